"""Measure what a harvest proposes of a developer's month: sessions in Claude Code's format with facts planted among the noise.

    python -m benchmarks.capture.month SESSIONS.jsonl [--show]

Each line of the file is a session: {"project", "date", "title", "turns": [{"user", "assistant", "fact": {"statement", "keys", "again"}?}]}. A
planted fact counts as found if one proposal from its turn contains all its keys. Printed: planted facts found, other proposals, and what is
left twice after harvesting everything again from copies, and once more with every planted turn in other words (`again`): second memories of a fact, those
among them that review shows as duplicates of the first, and facts that were wrongly folded, so that no memory states them any more or one memory has the
evidence of two. `--show` lists what was missed and what else was proposed, for sessions that may be looked at.
"""

import argparse
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.capture.sessions import loaded, rendered
from engram import Engram
from engram.capture.harvest import HarvestedFact, HarvestReport
from engram.model.memory import Memory
from engram.text.content_hash import content_hash
from engram.text.tokens import tokens

Sessions = Sequence[Mapping[str, Any]]
Turns = dict[str, Mapping[str, Any]]


def has_keys(statement: str, keys: Sequence[str]) -> bool:
    """Whether a statement contains every key, in any form of the word."""
    folded, stems = statement.casefold(), set(tokens(statement))
    return all(key.casefold() in folded or set(tokens(key)) <= stems for key in keys)


def harvested(mem: Engram, sessions: Sequence[Mapping[str, Any]], root: Path, seed: str) -> tuple[HarvestReport, Turns]:
    """Render sessions and harvest them until nothing is left; returns the report, and the turns by key."""
    turns = dict(rendered(sessions, root, seed))
    report = mem.harvest(root, harness="claude-code")
    while report.postponed:
        more = mem.harvest(root, harness="claude-code")
        report.postponed = {}
        report.add(more)
    return report, turns


def in_other_words(sessions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The sessions with every planted turn replaced by its paraphrase."""
    return [
        {**one, "turns": [{**turn, "user": turn["fact"]["again"]} if "fact" in turn else turn for turn in one["turns"]]}
        for one in sessions
    ]


def exact_twins(memories: Sequence[Memory]) -> int:
    """Live memories that repeat another one of the same scope."""
    return len(memories) - len({(memory.scope, content_hash(memory.statement)) for memory in memories})


def live(mem: Engram) -> list[Memory]:
    """The memories that are active or wait for review."""
    return [
        memory for memory in mem.list(limit=None, status="any") if memory.status in ("active", "candidate", "dormant")
    ]


def is_shown_with(mem: Engram, memory_id: str, other: str) -> bool:
    """Whether review shows a memory together with another one."""
    near = mem.review.provenance(memory_id).neighbours
    return other in {memory.id for memory in (*near.same, *near.similar, *near.conflicts, *near.heads)}


def wrongly_folded(
    mem: Engram, memories: Mapping[str, str], turns: Turns, planted: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """The planted facts missing from their final memory, and the memories with evidence of two different planted facts."""
    keys = {fact["statement"]: fact["keys"] for fact in planted.values()}
    lost = [fact for fact, ref in memories.items() if not has_keys(mem.get(ref).statement, keys[fact])]
    mixed = [memory.statement for memory in live(mem) if len(set(planted_facts(mem, memory, turns))) > 1]
    return lost + mixed


def planted_facts(mem: Engram, memory: Memory, turns: Turns) -> Iterator[str]:
    """The planted facts that are evidence of a memory."""
    for evidence in memory.evidence:
        event = mem.store.event(evidence.event)
        turn = turns.get(event.key, {}) if event is not None else {}
        if "fact" in turn:
            yield turn["fact"]["statement"]


def proposals(report: HarvestReport) -> list[HarvestedFact]:
    """The proposed facts."""
    return [fact for fact in report.facts if fact.outcome == "proposed"]


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sessions", type=Path)
    parser.add_argument("--show", action="store_true", help="list what was missed and what else was proposed")
    given = parser.parse_args()
    sessions = loaded(given.sessions)
    with tempfile.TemporaryDirectory() as scratch, Engram.open(ephemeral=True, clock=lambda: datetime.now(UTC)) as mem:
        root = Path(scratch)
        turns, memories = first_harvest(mem, sessions, root, given.show)
        repeated_harvest(mem, sessions, root)
        retold_harvest(mem, sessions, root, turns, memories, given.show)


def first_harvest(mem: Engram, sessions: Sessions, root: Path, shows: bool) -> tuple[Turns, dict[str, str]]:
    """What is proposed of the planted facts and of everything else.

    Returns the turns, and the memory of each fact by its statement.
    """
    began = time.perf_counter()
    report, turns = harvested(mem, sessions, root / "first", "first")
    seconds = time.perf_counter() - began
    planted = {key: turn["fact"] for key, turn in turns.items() if "fact" in turn}
    of_planted = [one for one in proposals(report) if one.key in planted]
    whole = [one for one in of_planted if has_keys(one.statement, planted[one.key]["keys"])]
    part = [one for one in of_planted if one not in whole]
    other = [one for one in proposals(report) if one.key not in planted]
    found = {one.key for one in whole}
    print(f"{len(sessions)} sessions, {report.turns} turns of the user, {report.size / 1e6:.1f} MB in {seconds:.1f} s")
    print(f"planted facts proposed    {len(found)} of {len(planted)}")
    print(f"parts of planted turns    {len(part)}")
    print(f"other proposals           {len(other)}")
    print(f"unlikely, trivial         {report.count('unlikely')}, {report.count('trivial')}")
    print(f"refused                   {report.count('refused')}")
    if shows:
        show(report, planted, found, part, other, turns)
    return turns, {planted[one.key]["statement"]: one.memory_id for one in proposals(report) if one.key in found}


def repeated_harvest(mem: Engram, sessions: Sessions, root: Path) -> None:
    """What is proposed from the same files, and from copies of them."""
    before = len(live(mem))
    again, _ = harvested(mem, sessions, root / "first", "first")
    copied, _ = harvested(mem, sessions, root / "copy", "copy")
    print(f"same files again          {again.sessions} read, {len(proposals(again))} proposed")
    print(f"copies of all sessions    {len(proposals(copied))} proposed, {len(live(mem)) - before} more memories")
    print(f"exact duplicates          {exact_twins(live(mem))}")


def retold_harvest(
    mem: Engram, sessions: Sessions, root: Path, turns: Turns, memories: Mapping[str, str], shows: bool
) -> None:
    """The number of facts with a second memory after they were repeated in other words."""
    retold, retold_turns = harvested(mem, in_other_words(sessions), root / "retold", "retold")
    facts = {key: turn["fact"] for key, turn in retold_turns.items() if "fact" in turn}
    twice = [
        one
        for one in proposals(retold)
        if (fact := facts.get(one.key)) and fact["statement"] in memories and has_keys(one.statement, fact["keys"])
    ]
    linked = [one for one in twice if is_shown_with(mem, one.memory_id, memories[facts[one.key]["statement"]])]
    total = max(1, len(live(mem)))
    alone = len(twice) - len(linked)
    print(
        f"told in other words       {len(twice)} second memories of one fact of {total} memories ({len(twice) / total:.1%}): "
        f"{len(linked)} shown as duplicates in review, {alone} not ({alone / total:.1%})"
    )
    planted = {key: turn["fact"] for key, turn in turns.items() if "fact" in turn}
    folded = wrongly_folded(mem, memories, {**turns, **retold_turns}, planted)
    print(f"wrongly folded            {len(folded)}")
    print(f"exact duplicates          {exact_twins(live(mem))}")
    if shows:
        for one in twice:
            print("  LINKED" if one in linked else "  TWICE ", one.statement, "|", one.reason)
        for statement in folded:
            print("  FOLDED", statement)


def show(
    report: HarvestReport,
    planted: Mapping[str, Any],
    found: set[str],
    part: Sequence[HarvestedFact],
    other: Sequence[HarvestedFact],
    turns: Turns,
) -> None:
    """List the missed facts, with the outcome of their turns, and the other proposals."""
    for key, fact in planted.items():
        if key not in found:
            print("  MISSED", turns[key]["user"][:300])
            for one in report.facts:
                if one.key == key:
                    print("      ", one.outcome, "|", one.statement, "|", one.reason)
            print("      ", fact["keys"])
    for one in other:
        print(
            "  OTHER ",
            one.statement,
            "|",
            one.reason,
            "|",
            turns[one.key]["user"][:200] if one.key in turns else one.key,
        )


if __name__ == "__main__":
    main()
