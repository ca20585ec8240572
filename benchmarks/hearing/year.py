"""Play a changing year into a store, in free wording and without conflict keys, and ask at its end what holds now and what held then.

    python -m benchmarks.hearing.year benchmarks/hearing/years [--misses] [--channel learn] [--min-relevance 0.08]

A scenario is a text file:

    == a title
    asked 2025-12-20
    2025-01-15 | learn | The project uses npm workspaces.
    2025-02-02 | talk | we finally ditched npm, everything's pnpm now. can you fix the lockfile?
    ? current | Which package manager do we use? || pnpm | npm
    ? past | What did we use in January? || npm
    ? when | When did we drop npm? || 2025-02-02
    ? many | Which languages does Ana speak? || Portuguese | German
    ? unchanged | Which port has the website? || 4215

A statement arrives by `remember`, `learn`, `add` or, for `talk`, as a message of a conversation. An answer is text that a hit contains:
for `current` the value that holds now, then outdated ones; for `many` every value; for `when` the day on which it was said. A `current`, `past`, `unchanged` or `when` question is
right if the first hit is; `found` counts those with the answer among the hits; `outdated` counts current questions with an old value first.
"""

import argparse
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from engram import Engram, Hit
from engram.recall.cutoff import ABOUT_FLOOR

CHANNELS = ("remember", "learn", "add", "talk")
KINDS = ("current", "past", "when", "many", "unchanged")


class Told(NamedTuple):
    """A statement, the day it was made and how it arrived."""

    at: datetime
    channel: str
    text: str


class Asked(NamedTuple):
    """A question and its answers."""

    kind: str
    text: str
    answers: tuple[str, ...]


class Year(NamedTuple):
    """A scenario."""

    title: str
    asked: datetime
    told: tuple[Told, ...]
    questions: tuple[Asked, ...]


def years(path: Path) -> Iterator[Year]:
    """The scenarios of a file. Raises `ValueError` for a line that cannot be read."""
    for block in f"\n{path.read_text('utf-8')}".split("\n== ")[1:]:
        title, *lines = (line for line in block.splitlines() if line.strip())
        asked = next(line for line in lines if line.startswith("asked ")).removeprefix("asked ")
        questions = tuple(_asked(line) for line in lines if line.startswith("? "))
        told = tuple(_told(line) for line in lines if not line.startswith(("? ", "asked ")))
        yield Year(title, _noon(asked), told, questions)


def _noon(day: str) -> datetime:
    return datetime.fromisoformat(day.strip()).replace(hour=12, tzinfo=UTC)


def _told(line: str) -> Told:
    day, channel, text = line.split(" | ", 2)
    return Told(_noon(day), channel, text)


def _asked(line: str) -> Asked:
    kind, rest = line.removeprefix("? ").split(" | ", 1)
    question, answers = rest.split(" || ", 1)
    return Asked(kind, question, tuple(answer.strip() for answer in answers.split(" | ")))


class Result(NamedTuple):
    """The answer to one question."""

    question: Asked
    right: bool
    found: bool
    outdated: bool
    hits: tuple[str, ...]


def play(year: Year, channel: str = "", floor: float = ABOUT_FLOOR) -> tuple[list[Result], Counter[str], float]:
    """The results of one scenario, the outcomes of its statements, and the seconds per question.

    `channel` overrides how statements arrive.
    """
    now = year.told[0].at
    outcomes: Counter[str] = Counter()
    with (
        tempfile.TemporaryDirectory() as home,
        Engram.open(Path(home) / "home", cache=Path(home) / "cache", directory=home, clock=lambda: now) as mem,
    ):
        for told in year.told:
            now = told.at
            outcomes.update(_tell(mem, told, channel or told.channel))
        now = year.asked
        started = time.perf_counter()
        found = [mem.recall(question.text, min_relevance=floor).hits for question in year.questions]
        seconds = (time.perf_counter() - started) / len(year.questions)
    return [_judged(question, hits) for question, hits in zip(year.questions, found, strict=True)], outcomes, seconds


def _tell(mem: Engram, told: Told, channel: str) -> list[str]:
    if channel == "talk":
        decided = mem.add_conversation(told.text, scope="global").decisions
        return [f"talk {decision.operation}" for decision in decided] or ["talk nothing"]
    if channel == "add":
        mem.add(told.text, scope="global")
        return ["add"]
    decide = mem.remember if channel == "remember" else mem.learn
    return [f"{channel} {decide(told.text, scope='global').outcome.name}"]


def _judged(question: Asked, hits: Sequence[Hit]) -> Result:
    kind, answers = question.kind, question.answers
    shown = tuple(f"{_day(hit)} {hit.text}{f' ({hit.note})' if hit.note else ''}" for hit in hits)
    texts = [_day(hit) if kind == "when" else hit.text.casefold() for hit in hits]
    if kind == "many":
        every = all(any(answer.casefold() in text for text in texts) for answer in answers)
        return Result(question, every, every, outdated=False, hits=shown)
    right = [answers[0].casefold() in text for text in texts]
    old = bool(texts) and not right[0] and any(answer.casefold() in texts[0] for answer in answers[1:])
    return Result(question, any(right[:1]), any(right), outdated=old, hits=shown)


def _day(hit: Hit) -> str:
    at = hit.event.at if hit.event is not None else hit.memory.valid_from or hit.memory.when if hit.memory else None
    return f"{at:%Y-%m-%d}" if at is not None else ""


def line(name: str, results: Sequence[Result]) -> str:
    """One row of the table: the share of right answers of each kind, and for current questions also found and outdated."""
    by_kind = {kind: [result for result in results if result.question.kind == kind] for kind in KINDS}
    shares = [_share([result.right for result in by_kind[kind]]) for kind in KINDS]
    now = by_kind["current"]
    extra = (_share([result.found for result in now]), _share([result.outdated for result in now]))
    return f"{name[:34]:<36}" + "".join(f"{share:>10}" for share in (*shares, *extra))


def _share(right: Sequence[bool]) -> str:
    return f"{sum(right) / len(right):.2f}" if right else "-"


def main() -> None:
    """Play the scenarios of the directories and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("places", nargs="+", type=Path, help="files or directories of scenarios")
    parser.add_argument("--channel", choices=CHANNELS, default="", help="tell everything this way")
    parser.add_argument("--min-relevance", type=float, default=ABOUT_FLOOR)
    parser.add_argument("--misses", action="store_true", help="print the questions answered wrongly, with the hits")
    given = parser.parse_args()
    files = [path for place in given.places for path in (sorted(place.glob("*.txt")) if place.is_dir() else [place])]
    print(f"{'':<36}" + "".join(f"{title:>10}" for title in (*KINDS, "found", "outdated")))
    every: list[Result] = []
    outcomes: Counter[str] = Counter()
    seconds = []
    for year in (year for path in files if path.name != "README.txt" for year in years(path)):
        results, became, took = play(year, given.channel, given.min_relevance)
        every += results
        outcomes.update(became)
        seconds.append(took)
        print(line(year.title, results), flush=True)
        if given.misses:
            _print_misses(results)
    print(line("all", every))
    print(
        f"{len(every)} questions, {1000 * sum(seconds) / max(1, len(seconds)):.1f} ms each; told: "
        + ", ".join(f"{name} {count}" for name, count in sorted(outcomes.items()))
    )


def _print_misses(results: Sequence[Result]) -> None:
    for result in results:
        if not result.right:
            print(f"  {result.question.kind}: {result.question.text} → {' | '.join(result.question.answers)}")
            for hit in result.hits[:4] or ("nothing",):
                print(f"      {hit}")


if __name__ == "__main__":
    main()
