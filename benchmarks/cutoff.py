"""Measure what `recall` returns on stores whose questions say which memory answers them, through the public API.

    python -m benchmarks.cutoff FILE.json… [--min-relevance 0.1]

A file holds `memories` (id, text, date) and `questions` (q, label, answer): `answerable` ones with the ids that answer them, `unknown` ones
about what the store knows in part, `unrelated` ones about something else; they are asked a week after the last memory. Printed for each file and for all together: the share of
answerable questions with a right memory first and anywhere, the share of the others answered with nothing, the mean number of hits
of an answerable question, and the share of all returned hits that are right.
"""

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from engram import Engram
from engram.recall.cutoff import ABOUT_FLOOR


def measure(path: Path, floor: float) -> Counter[str]:
    """Counts of the outcomes for the questions of one file."""
    data = json.loads(path.read_text("utf-8"))
    counts: Counter[str] = Counter()
    days = [datetime.fromisoformat(memory["date"]).replace(hour=12, tzinfo=UTC) for memory in data["memories"]]
    now = days[0]
    with (
        tempfile.TemporaryDirectory() as home,
        Engram.open(Path(home) / "home", directory=home, clock=lambda: now) as mem,
    ):
        ids: dict[str, str] = {}
        for memory, now in zip(data["memories"], days, strict=True):  # noqa: B007
            decided = mem.remember(memory["text"], scope="global").memory
            if decided is not None:
                ids[decided.id] = memory["id"]
        now = max(days) + timedelta(days=7)
        for question in data["questions"]:
            found = mem.recall(question["q"], min_relevance=floor).hits
            counts.update(_judged(question, [ids.get(hit.id, "") for hit in found]))
    return counts


def _judged(question: dict[str, Any], found: Sequence[str]) -> Counter[str]:
    label, right = question["label"], [memory in question.get("answer", ()) for memory in found]
    counts = Counter({label: 1, f"{label} empty": not found, "returned": len(found), "right": sum(right)})
    if label == "answerable":
        counts.update({"first": any(right[:1]), "anywhere": any(right), "hits": len(found)})
    return counts


def line(name: str, counts: Counter[str]) -> str:
    """One row of the table."""
    asked, others = counts["answerable"] or 1, counts["unknown"] + counts["unrelated"] or 1
    columns = (
        counts["first"] / asked,
        counts["anywhere"] / asked,
        counts["unknown empty"] / (counts["unknown"] or 1),
        counts["unrelated empty"] / (counts["unrelated"] or 1),
        (counts["unknown empty"] + counts["unrelated empty"]) / others,
        counts["hits"] / asked,
        counts["right"] / (counts["returned"] or 1),
    )
    return f"{name:<12}" + "".join(f"{value:>11.2f}" for value in columns)


def main() -> None:
    """Measure the files named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--min-relevance", type=float, default=ABOUT_FLOOR)
    given = parser.parse_args()
    titles = ("first", "anywhere", "unknown", "unrelated", "nothing", "hits", "precision")
    print(f"{'':<12}" + "".join(f"{title:>11}" for title in titles))
    total: Counter[str] = Counter()
    for path in given.files:
        counts = measure(path, given.min_relevance)
        total.update(counts)
        print(line(path.stem, counts), flush=True)
    print(line("all", total))


if __name__ == "__main__":
    main()
