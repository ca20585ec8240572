"""What hooks remember about one session: which memories it was given, and when it was last reminded of something."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from engram.disk import DIRECTORY_MODE, json_line, json_object, read_bytes, replace_file
from engram.hooks.place import HookPlace
from engram.store.spool import session_name

KEPT_SECONDS = 30 * 24 * 3600
"""A session that was quiet for longer is forgotten."""
MAX_SWEPT_MEMOS = 50
"""Files that one session's start looks at."""
MAX_GIVEN_IDS = 60
"""Memories that are remembered as given."""


class SessionMemo:
    """The memo of one session, a small file below `state/hooks/`; elsewhere, where that cannot be written."""

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
        """Note that the session is given memories; `save` records that as a use of them."""
        self._fresh += ids
        self._fields["given"] = [*(one for one in self.given_ids if one not in ids), *ids][-MAX_GIVEN_IDS:]

    def seconds_since(self, what: str) -> float:
        """How long ago the session was told something; infinite if never."""
        at = self._fields.get(what)
        return abs(time.time() - at) if isinstance(at, int | float) else float("inf")

    def note(self, what: str) -> None:
        """Note that the session is told something now."""
        self._fields[what] = time.time()

    def count(self, what: str) -> int:
        """One more of something; returns how many there are."""
        before = self._fields.get(what)
        self._fields[what] = (before if isinstance(before, int) else 0) + 1
        return int(self._fields[what])

    def reset(self, what: str) -> None:
        """Start counting again."""
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
        """One line in the usage log, as `inject` writes it; each memory is given once per session, so no session is named."""
        from datetime import UTC, datetime

        from engram.model.errors import StoreReadOnly
        from engram.model.usage import Use
        from engram.store.files.log.usage import Usage

        with suppress(StoreReadOnly):
            Usage(self._usage).append(Use("injected", tuple(self._fresh), datetime.now(UTC)))
        self._fresh = []

    def sweep(self) -> None:
        """Remove memos of sessions that were quiet for long."""
        oldest = time.time() - KEPT_SECONDS
        try:
            with os.scandir(self._folders[0]) as entries:
                for entry, _ in zip(entries, range(MAX_SWEPT_MEMOS), strict=False):
                    if entry.is_file(follow_symlinks=False) and entry.stat().st_mtime < oldest:
                        Path(entry.path).unlink()
        except OSError:
            return
