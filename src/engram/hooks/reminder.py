"""PostToolBatch: a rare, factual reminder that lessons can be recorded, after work that looks finished."""

import re
from functools import cache
from pathlib import Path

from engram.hooks.payload import HookPayload
from engram.hooks.place import HookPlace
from engram.hooks.session_memo import SessionMemo

REMIND_AGAIN = 30 * 60.0
"""Seconds between two reminders of one session."""
MAX_BATCHES_UNREMINDED = 60
"""Batches of tools after which a session is reminded even if nothing looked finished."""
_WORD = r"""(?:[^\s"';&|]|"[^"]*"|'[^']*')+"""
_OPTIONS = rf"(?:\s+-{_WORD}(?:\s+(?!-){_WORD})?){{0,8}}?\s+"
_COMMAND = r"(?:^|[;&|(])[^\S\n]*+(?:(?:sudo|env|time|then|do|command|\w+=\S*)\s++){0,4}+"
"""Where a command of a shell begins: not within quotes, nor after the name of another program."""
_ENDS_NOTHING = r"(?![^;&|\n]*\s(?:--dry-run|--abort|--quit|--list|-l|--help|-h|--no-commit|-d|--delete)(?:\s|$))"
REMINDER = (
    "Engram: this looks like the end of a piece of work. The skill /engram:learn records what a later session should do differently "
    "(corrections, failed approaches, facts that were hard to find); routine work needs no entry."
)


def remind(place: HookPlace, payload: HookPayload) -> str:
    """The reminder, or "" where none is due."""
    if payload.is_subagent:
        return ""
    memo = SessionMemo(place, payload.session)
    batches = memo.count("batches")
    is_boundary = any(_ends_work(command) for command in payload.commands)
    due = (is_boundary or batches >= MAX_BATCHES_UNREMINDED) and memo.seconds_since("reminder") >= REMIND_AGAIN
    if due:
        memo.note("reminder")
        memo.reset("batches")
    memo.save()
    return REMINDER if due else ""


def _ends_work(command: str) -> bool:
    return _boundaries().search(command) is not None


@cache
def _boundaries() -> re.Pattern[str]:
    """A program, its options, and what it does: `git -C folder commit`, but not `git commit --dry-run`."""
    lines = Path(__file__).with_name("boundaries.txt").read_text("utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    actions = "|".join(_OPTIONS.join(map(re.escape, row)) for row in words)
    return re.compile(rf"{_COMMAND}(?:{actions})(?![\w-]){_ENDS_NOTHING}", re.MULTILINE)
