"""Hook state of one session: the memories it was given, and the time of its last reminder.

The reminder (PostToolBatch) suggests recording lessons after work that looks finished.
"""

import os
import re
import time
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

from engram.disk import DIRECTORY_MODE, json_line, json_object, read_bytes, replace_file
from engram.hooks.place import HookPayload, HookPlace
from engram.store.hook_files import session_name

KEPT_SECONDS = 30 * 24 * 3600
"""Memos of sessions that were quiet for longer are deleted."""
MAX_SWEPT_MEMOS = 50
"""Maximum memo files that one session start checks."""
MAX_GIVEN_IDS = 60
"""Maximum given memories that are remembered."""


class SessionMemo:
    """The memo of one session, a small file below `state/hooks/`, or elsewhere if that cannot be written."""

    def __init__(self, place: HookPlace, session: str) -> None:
        self._usage = place.root / "usage"
        self._folders = place.memos
        self._name = f"{session_name(session)}.json"
        self._fields = self._read()
        self._fresh: list[str] = []

    def _read(self) -> dict[str, Any]:
        for folder in self._folders:
            with suppress(OSError):
                return json_object(read_bytes(folder / self._name))
        return {}

    @property
    def given_ids(self) -> list[str]:
        """The memories that this session was given, oldest first."""
        found = self._fields.get("given")
        return [one for one in found if isinstance(one, str)] if isinstance(found, list) else []

    def give(self, ids: list[str]) -> None:
        """Note that the session is given memories; `save` records that as their use."""
        self._fresh += ids
        self._fields["given"] = [*(one for one in self.given_ids if one not in ids), *ids][-MAX_GIVEN_IDS:]

    def seconds_since(self, what: str) -> float:
        """How long ago the session was last notified of something; infinite if never."""
        at = self._fields.get(what)
        return abs(time.time() - at) if isinstance(at, int | float) else float("inf")

    def note(self, what: str) -> None:
        """Note that the session is notified of something now."""
        self._fields[what] = time.time()

    def count(self, what: str) -> int:
        """Count one more of something; returns the new count."""
        before = self._fields.get(what)
        self._fields[what] = (before if isinstance(before, int) else 0) + 1
        return int(self._fields[what])

    def reset(self, what: str) -> None:
        """Restart a count."""
        self._fields.pop(what, None)

    def save(self) -> None:
        """Write it to the first folder that can be written."""
        for folder in self._folders:
            with suppress(OSError):
                folder.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
                replace_file(folder / self._name, json_line(self._fields, "replace"), durable=False)
                break
        if self._fresh:
            self._note_use()

    def _note_use(self) -> None:
        """Append a line to the usage log, as `inject` does.

        A memory is given once per session, so the line names no session.
        """
        from datetime import UTC, datetime

        from engram.model.errors import StoreReadOnly
        from engram.model.records import Use
        from engram.store.files.log.journal import Usage

        with suppress(StoreReadOnly):
            Usage(self._usage).append(Use("injected", tuple(self._fresh), datetime.now(UTC)))
        self._fresh = []

    def sweep(self) -> None:
        """Remove the memos of sessions that were quiet for long."""
        oldest = time.time() - KEPT_SECONDS
        try:
            with os.scandir(self._folders[0]) as entries:
                for entry, _ in zip(entries, range(MAX_SWEPT_MEMOS), strict=False):
                    if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < oldest:
                        Path(entry.path).unlink()
        except OSError:
            return


REMIND_AGAIN = 30 * 60.0
"""Minimum seconds between two reminders of one session."""
MAX_BATCHES_UNREMINDED = 60
"""Batches of tools after which a session is reminded even if nothing looked finished."""
_SHELL_WORD = r"""(?:[^\s"';&|]|"[^"]*"|'[^']*')+"""
_OPTIONS = rf"(?:\s+-{_SHELL_WORD}(?:\s+(?!-){_SHELL_WORD})?){{0,8}}?\s+"
_COMMAND = r"(?:^|[;&|(])[^\S\n]*+(?:(?:sudo|env|time|then|do|command|\w+=\S*)\s++){0,4}+"
"""Where a shell command begins: not within quotes, and not after the name of another program."""
_ENDS_NOTHING = r"(?![^;&|\n]*\s(?:--dry-run|--abort|--quit|--list|-l|--help|-h|--no-commit|-d|--delete)(?:\s|$))"
REMINDER = (
    "Engram: this looks like the end of a piece of work. The skill /engram:learn records what a later session should do differently "
    "(corrections, failed approaches, facts that were hard to find); routine work needs no entry."
)


def remind(place: HookPlace, payload: HookPayload) -> str:
    """The reminder; "" if none is due."""
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
    """Patterns of finished work: a program, its options and its command: `git -C folder commit`, but not `git commit --dry-run`."""
    lines = Path(__file__).with_name("boundaries.txt").read_text("utf-8").splitlines()
    words = [line.split() for line in lines if line and not line.startswith("#")]
    actions = "|".join(_OPTIONS.join(map(re.escape, row)) for row in words)
    return re.compile(rf"{_COMMAND}(?:{actions})(?![\w-]){_ENDS_NOTHING}", re.MULTILINE)
