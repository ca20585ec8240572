"""Measure how fast transcripts are read, and how fast a harvest with nothing new ends.

    python -m benchmarks.capture.speed [--megabytes 300] [--sessions 10000]

Printed: megabytes per second that are parsed into turns (and with secrets redacted and pasted text blanked, as they are judged), peak memory, and the
seconds of a harvest of so many sessions none of which has changed.
"""

import argparse
import resource
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from benchmarks.capture.sessions import SessionWriter
from engram import Engram
from engram.agents.transcripts.session import Problems, reader_of
from engram.capture.transcripts.windows import windows

_ASKED = (
    "can you look at the booking tests, two of them are flaky since yesterday",
    "hm, same again. this is what I get:\n\nTraceback (most recent call last):\n  File \"app.py\", line 3, in <module>\nKeyError: 'id'\n\nany idea?",
    "ok do that",
    "we never mock the database in this repo, use the container",
)


def write_sessions(root: Path, megabytes: float) -> int:
    """Write sessions of a few hundred kB each up to this many megabytes. Returns their size."""
    size, number = 0, 0
    while size < megabytes * 1e6:
        writer = SessionWriter(
            root,
            f"project{number % 7}",
            datetime(2026, 9, 1, 8, tzinfo=UTC) + timedelta(hours=number),
            f"speed/{number}",
        )
        path, _ = writer.write([{"user": _ASKED[turn % len(_ASKED)], "assistant": "Done."} for turn in range(40)])
        size += path.stat().st_size
        number += 1
    return size


def parsed(root: Path, prepared: bool) -> int:
    """Read every turn below a folder; `prepared` also redacts and masks them. Returns their number."""
    reader, problems, turns = reader_of("claude-code"), Problems(), 0
    for session in reader.sessions(root, problems):
        transcript = reader.read(session, 0).transcript
        if prepared:
            turns += sum(len(window.turns) for window in windows(transcript.turns, 0, lambda turn: turn.at))
        else:
            turns += sum(1 for _ in transcript.turns)
    return turns


def resumed(root: Path, sessions: int) -> float:
    """The seconds of a harvest of sessions without a new one."""
    for number in range(sessions):
        start = datetime(2026, 9, 1, 8, tzinfo=UTC) + timedelta(minutes=number)
        writer = SessionWriter(root, f"project{number % 50}", start, f"resume/{number}")
        writer.write([{"user": "run it", "assistant": "Done."}])
    with Engram.open(ephemeral=True) as mem:
        mem.harvest(root, harness="claude-code")
        began = time.perf_counter()
        report = mem.harvest(root, harness="claude-code")
        seconds = time.perf_counter() - began
    assert report.unchanged == sessions, report
    return seconds


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=float, default=300)
    parser.add_argument("--sessions", type=int, default=10_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        root = Path(scratch)
        if given.megabytes:
            size = write_sessions(root / "large", given.megabytes)
            for name, prepared in (("parsed", False), ("parsed and prepared", True)):
                began = time.perf_counter()
                turns = parsed(root / "large", prepared)
                seconds = time.perf_counter() - began
                print(f"{name:<22} {size / 1e6 / seconds:.0f} MB/s ({size / 1e6:.0f} MB, {turns:,} turns)")
            print(f"{'peak memory':<22} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
        if given.sessions:
            print(f"{'nothing new':<22} {resumed(root / 'many', given.sessions):.2f} s for {given.sessions:,} sessions")


if __name__ == "__main__":
    main()
