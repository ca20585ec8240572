"""The hand-written questions: when each is asked, what it asks for and of which time.

A row is `intent | window | question`. A window is `since .. until`, half-open, wall time of the zone; an end left out is open; `now`
is the question's instant, inside; `-` is none; `before: I moved` is an anchor and how the time lies to it. `@` sets when and
where the questions below are asked.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

from engram.text.time.windows import Window

FOLDER = Path(__file__).parent / "questions"
HELD_OUT = Path(__file__).parent / "held_out.txt"
RELATIONS = ("before", "after", "during")


@dataclass(frozen=True)
class Expected:
    """One question and what must be understood of it."""

    text: str
    at: datetime
    intent: str
    window: Window | None
    anchor: str
    relation: str


def every_question() -> list[Expected]:
    """The rows of all tables."""
    return [row for table in sorted(FOLDER.glob("*.txt")) for row in questions(table)]


def grammar_rows() -> list[tuple[str, str]]:
    """Intent and text of each question that the grammar of its verb decides."""
    lines = (FOLDER.parent / "grammar.txt").read_text("utf-8").splitlines()
    pairs = (line.split(" | ", 1) for line in lines if line and not line.startswith("#"))
    return [(intent, text) for intent, text in pairs]


def questions(table: Path) -> list[Expected]:
    """The rows of one table."""
    rows: list[Expected] = []
    at = None
    for line in table.read_text(encoding="utf-8").splitlines():
        if line.startswith("@"):
            when, zone = line[1:].split()
            at = datetime.fromisoformat(when).replace(tzinfo=ZoneInfo(zone))
        elif line.strip() and not line.startswith("#"):
            assert at is not None, "a table begins with when its questions are asked"
            rows.append(_row(line, at))
    return rows


def _row(line: str, at: datetime) -> Expected:
    intent, time, text = (part.strip() for part in line.split("|", 2))
    relation, colon, anchor = time.partition(": ")
    if colon and relation in RELATIONS:
        return Expected(text, at, intent, None, anchor, relation)
    return Expected(text, at, intent, None if time == "-" else _window(time, at), "", "")


def _window(time: str, at: datetime) -> Window:
    since, until = (_end(part.strip(), at) for part in time.split(".."))
    return Window(since, until)


def _end(written: str, at: datetime) -> datetime | None:
    if written == "now":
        return at + timedelta(microseconds=1)
    return datetime.fromisoformat(written).replace(tzinfo=at.tzinfo) if written else None
