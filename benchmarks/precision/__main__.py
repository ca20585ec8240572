"""How much of what `recall` answers with is right, in small stores of entities with aliases and of states that changed.

    python -m benchmarks.precision [FILE.json…] [--misses CONDITION]

Each world is stored in three ways: its statements alone; telling what each one replaced; and with the aliases of what a statement is about
as cues besides. Printed for each: precision and recall of the known hits, F1, the precision of the questions of each kind, and the share
of questions without an answer for which nothing is known. The statement that explains an alias counts neither as right nor as wrong.
`--misses` lists the questions with wrong or missing hits.
"""

import argparse
import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engram import Engram

DEVELOPMENT = Path(__file__).with_name("development.json")
CONDITIONS = ("statements", "replacements", "aliases")
START = datetime(2026, 3, 2, 9, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Judged:
    """A question with the ids that answer it, and the known hits, best first, without the statements that explain an alias."""

    world: str
    kind: str
    question: str
    right: frozenset[str]
    known: tuple[tuple[str, float], ...]

    @property
    def hits(self) -> int:
        """The number of right memories among the known hits."""
        return sum(one in self.right for one, _ in self.known)

    @property
    def is_perfect(self) -> bool:
        """Whether the known hits are exactly the right memories."""
        return self.hits == len(self.known) == len(self.right)


def main() -> None:
    """Print a table for each file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, default=[DEVELOPMENT], metavar="FILE.json")
    parser.add_argument("--misses", choices=CONDITIONS, help="list the questions that are not answered exactly")
    given = parser.parse_args()
    for path in given.files:
        worlds = json.loads(path.read_text("utf-8"))["worlds"]
        print(path.name)
        for condition in CONDITIONS:
            judged = [one for world in worlds for one in judge_world(world, condition)]
            print(describe(condition, judged))
            if condition == given.misses:
                print("\n".join(describe_miss(one) for one in judged if not one.is_perfect))


def judge_world(world: Mapping[str, Any], condition: str) -> Iterator[Judged]:
    """Store a world, one memory a day, and ask its questions a week later."""
    now = START
    with tempfile.TemporaryDirectory() as home, Engram.open(Path(home), directory=home, clock=lambda: now) as mem:
        ids: dict[str, str] = {}
        for memory in world["memories"]:
            now += timedelta(days=1)
            ids[memory["id"]] = _store(mem, world, memory, condition, ids)
        now += timedelta(days=7)
        names = {stored: name for name, stored in ids.items()}
        for question in world["questions"]:
            known = [(names[hit.id], hit.relevance) for hit in mem.recall(question["q"]).hits]
            counted = tuple(one for one in known if one[0] not in question["also"])
            yield Judged(world["name"], question["kind"], question["q"], frozenset(question["answer"]), counted)


def _store(
    mem: Engram, world: Mapping[str, Any], memory: Mapping[str, Any], condition: str, ids: Mapping[str, str]
) -> str:
    cues = world["aliases"][memory["about"]] if condition == "aliases" and "about" in memory else []
    replaced = [] if condition == "statements" else [ids[name] for name in memory.get("replaces", ())]
    decided = mem.learn(memory["text"], scope="global", source="human", cues=cues, supersedes=replaced)
    assert decided.memory is not None, decided
    return decided.memory.id


def describe(condition: str, judged: Sequence[Judged]) -> str:
    """One line of the table."""
    answerable = [one for one in judged if one.right]
    found = sum(one.hits for one in answerable)
    precision = found / max(1, sum(len(one.known) for one in judged))
    recall = found / max(1, sum(len(one.right) for one in answerable))
    f1 = 2 * precision * recall / max(1e-9, precision + recall)
    kinds = " ".join(f"{kind} {_precision_of(judged, kind):.2f}" for kind in ("alias", "state", "several", "topic"))
    nothing = [not one.known for one in judged if not one.right]
    return (
        f"  {condition:13} precision {precision:.2f}  recall {recall:.2f}  F1 {f1:.2f}  {kinds}"
        f"  nothing {sum(nothing) / max(1, len(nothing)):.2f}"
        f"  exact {sum(one.is_perfect for one in judged) / len(judged):.2f}"
    )


def _precision_of(judged: Sequence[Judged], kind: str) -> float:
    chosen = [one for one in judged if one.kind == kind]
    return sum(one.hits for one in chosen) / max(1, sum(len(one.known) for one in chosen))


def describe_miss(one: Judged) -> str:
    """A question with its known hits instead of the right ones."""
    known = " ".join(f"{name}:{relevance:.2f}{'' if name in one.right else '!'}" for name, relevance in one.known)
    missing = " ".join(sorted(one.right - {name for name, _ in one.known}))
    return f"    {one.kind:8}{one.world[:14]:15}{one.question}  [{known}]  missing: {missing or '-'}"


if __name__ == "__main__":
    main()
