"""Measure the secrets gate: secrets that are caught, and ordinary notes that are refused or changed.

    python -m benchmarks.secrets --secrets SECRETS.jsonl --notes NOTES.jsonl [--misses]

A line of SECRETS is {"text": …, "secret": …}, a line of NOTES {"text": …}. A secret is caught if `learn` refuses the text because of
it, or if the text of the observed event no longer contains it. A note is refused if the gate refuses it in `learn` or `add`, or if
the text of the observed event differs.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from engram import Engram
from engram.model.errors import SecretRefused

Row = Mapping[str, str]


def main() -> None:
    """Print the shares, and with --misses the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--secrets", type=Path, action="append", default=[])
    parser.add_argument("--notes", type=Path, action="append", default=[])
    parser.add_argument("--misses", action="store_true", help="print every text that was judged wrongly")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, Engram.open(Path(scratch)) as mem:
        for path in given.secrets:
            report(path, "caught", lambda row: catch_secret(mem, row), wrong=False, shown=given.misses)
        for path in given.notes:
            report(path, "refused", lambda row: refuse_note(mem, row), wrong=True, shown=given.misses)


def read_rows(path: Path) -> list[Row]:
    """The objects of a file, one a line."""
    return [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]


def report(path: Path, verb: str, judge: Callable[[Row], str], *, wrong: bool, shown: bool) -> None:
    """Print the share of a file's rows for which `judge` gives a reason, and the rows for which the result is `wrong`."""
    rows = read_rows(path)
    reasons = [judge(row) for row in rows]
    count = sum(map(bool, reasons))
    print(f"{path.name}: {count} of {len(rows)} {verb} ({100 * count / max(1, len(rows)):.1f} %)")
    for row, reason in zip(rows, reasons, strict=True) if shown else ():
        if bool(reason) is wrong:
            print("   ", json.dumps(row, ensure_ascii=False), f"-- {reason}" if reason else "")


def catch_secret(mem: Engram, row: Row) -> str:
    """How the secret was caught; "" if it was stored."""
    decision = mem.learn(row["text"])
    if decision.gate == "secrets":
        return decision.reason
    event = mem.observe("benchmark", "user", row["text"])
    return "redacted" if row["secret"] not in event.content else ""


def refuse_note(mem: Engram, row: Row) -> str:
    """Why the note was refused or changed; "" if it was stored as it is."""
    decision = mem.learn(row["text"])
    if decision.gate == "secrets":
        return decision.reason
    try:
        mem.add(row["text"])
    except SecretRefused as refused:
        return str(refused)
    event = mem.observe("benchmark", "user", row["text"])
    return f"redacted: {event.content}" if event.content != row["text"] else ""


if __name__ == "__main__":
    main()
