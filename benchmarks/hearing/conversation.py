"""Measure what `add_conversation` keeps of labelled talk, end to end, through a store of its own for each writer.

    python -m benchmarks.hearing.conversation [--held] [--alone] [--misses WRITER]

A decision counts for the labelled sentence whose words it names. Printed for each writer and for all: the share of sentences to keep that were kept,
also as a candidate; the share of what was kept that was labelled `keep` or `maybe`; what was kept of 100 exchanges with
nothing to keep; and the milliseconds per exchange.
"""

import argparse
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.hearing.talk import FOLDER, HELD, Labelled, LabelledTurn, Sentence, conversations, writers
from engram import Engram
from engram.capture.exchange import FactDecision

KEPT, CANDIDATE, SKIPPED = "kept", "candidate", "skipped"


@dataclass(frozen=True)
class Outcome:
    """A labelled sentence and its outcome."""

    sentence: Sentence
    fate: str
    facts: tuple[str, ...]
    empty: int
    """The number of its exchange if nothing in that is worth keeping, else 0."""


def outcomes(mem: Engram, talk: Labelled, session: str, counts: Counter[str], alone: bool = False) -> Iterator[Outcome]:
    """The outcome for each sentence of the user in one conversation; `alone` gives each exchange its own session."""
    for place, turn in enumerate(talk):
        if turn.role != "user":
            continue
        answer = talk[place + 1].content if place + 1 < len(talk) else ""
        started = time.perf_counter()
        decisions = mem.add_conversation(
            turn.content, answer, session=f"{session}-{place}" if alone else session, scope="global", key=str(place)
        ).decisions
        counts["ms"] += int(1e6 * (time.perf_counter() - started))
        counts["exchanges"] += 1
        empty = all(one.worth == "skip" for one in turn.sentences)
        counts["empty"] += empty
        for said in turn.sentences:
            about = [one for one in decisions if _is_about(one, said, turn)]
            facts = tuple(one.fact for one in about if _fate(one) != SKIPPED)
            fate = min((_fate(one) for one in about), key=(KEPT, CANDIDATE, SKIPPED).index, default=SKIPPED)
            yield Outcome(said, fate, facts, counts["exchanges"] if empty else 0)


def _is_about(decision: FactDecision, said: Sentence, turn: LabelledTurn) -> bool:
    words = decision.said.strip()
    return bool(words) and (words in said.text or said.text in words)


def _fate(decision: FactDecision) -> str:
    if not decision.reason.startswith("kept"):
        return SKIPPED
    return CANDIDATE if decision.reason.startswith("kept as a candidate") else KEPT


def _figures(name: str, found: Sequence[Outcome], counts: Counter[str]) -> str:
    wanted = [one for one in found if one.sentence.worth == "keep"]
    kept = [one for one in found if one.fate == KEPT]
    recall = sum(one.fate == KEPT for one in wanted) / len(wanted)
    with_candidates = sum(one.fate != SKIPPED for one in wanted) / len(wanted)
    precision = sum(one.sentence.worth != "skip" for one in kept) / max(1, len(kept))
    strictly = sum(one.sentence.worth == "keep" for one in kept) / max(1, len(kept))
    junk = 100 * len({one.empty for one in kept if one.empty}) / max(1, counts["empty"])
    ms = counts["ms"] / 1000 / max(1, counts["exchanges"])
    return f"{name:<12}{len(wanted):>6}{recall:>8.3f}{with_candidates:>8.3f}{precision:>8.3f}{strictly:>8.3f}{junk:>8.1f}{ms:>8.1f}"


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", action="store_true", help="measure on the held-out writers; only figures are printed")
    parser.add_argument("--misses", default="", help="print what one writer's talk lost, and what was kept wrongly")
    parser.add_argument("--alone", action="store_true", help="each exchange by itself, without those before it")
    given = parser.parse_args()
    everything: list[Outcome] = []
    total: Counter[str] = Counter()
    print(f"{'writer':<12}{'wanted':>6}{'recall':>8}{'+cand.':>8}{'precis.':>8}{'strict':>8}{'junk%':>8}{'ms':>8}")
    folder = HELD if given.held else FOLDER
    for writer in writers(folder):
        counts: Counter[str] = Counter()
        with Engram.open(ephemeral=True) as mem:
            found = [
                one
                for number, talk in enumerate(conversations(writer, folder))
                for one in outcomes(mem, talk, f"talk-{number}", counts, given.alone)
            ]
        print(_figures(writer, found, counts), flush=True)
        everything += found
        total += counts
        for one in found if given.misses == writer and not given.held else ():
            if (one.fate == KEPT) != (one.sentence.worth == "keep") and one.sentence.worth != "maybe":
                print(f"  {one.fate:<10}{one.sentence.text}  {' | '.join(one.facts)}")
    print(_figures("all", everything, total))


if __name__ == "__main__":
    main()
