"""Waiting for an editor that is still saving a file."""

import contextlib
import json
import os
import time
from collections.abc import Iterable, Sequence

from engram.model.errors import EngramError
from engram.store.files import memories
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.folders import full_path
from engram.store.files.reconcile.index_records import records_in, stamps_known
from engram.store.sqlite.sweep import folder_time

YOUNG_SECONDS = 0.1
"""An editor may still be saving a file that was changed less than this long ago."""
STEADY_SECONDS = 0.015
"""A young file that stays as it is for this long is complete; it is longer than a tick of a file system's clock."""
SAVING_SECONDS = 0.3
"""The most time to wait for a save; a file that changes for longer is read later."""


def await_saves(context: IndexContext, stored_paths: Iterable[str]) -> set[str]:
    """Wait a moment until files that were changed just now stay as they are; returns those that still change.

    An editor may save in several steps: empty the file and write it in parts, or move it away and write a new one. Half a
    memory can be valid YAML.
    """
    full = {stored: full_path(context, stored) for stored in stored_paths}
    young = {stored: stamp_of(path) for stored, path in full.items() if _is_young(path)}
    if young:
        known = {row[0]: Stamp(*row[1:]) for row in stamps_known(context.index, young)}
        records = records_in(context.index, list(young))
        young = {
            stored: stamp
            for stored, stamp in young.items()
            if known.get(stored) != stamp and not _is_written_by_engram(full[stored], records.get(stored, ()))
        }
    deadline = time.monotonic() + SAVING_SECONDS
    while young and time.monotonic() < deadline:
        time.sleep(STEADY_SECONDS)
        later = {stored: stamp_of(full[stored]) for stored in young}
        young = {
            stored: stamp
            for stored, stamp in later.items()
            if stamp != young[stored] or (stamp is None and _is_young(full[stored]))
        }
    return set(young)


def _is_written_by_engram(path: str, records: Sequence[str]) -> bool:
    """Whether a file is as Engram wrote it, for example in another process a moment ago."""
    with contextlib.suppress(EngramError):
        return is_as_written(memories.content(path), records)
    return False


def _is_young(path: str) -> bool:
    """Whether a file was changed, or removed from its folder, a moment ago. A time in the future counts as now."""
    changed = folder_time(path)
    if changed < 0:
        changed = folder_time(os.path.dirname(path))  # noqa: PTH120 -- called for every changed file
    return time.time() - changed / 1e9 < YOUNG_SECONDS


def is_as_written(data: bytes, records: Sequence[str]) -> bool:
    """Whether a file is, byte for byte, what Engram wrote for its only indexed record; then it need not be parsed."""
    return len(records) == 1 and memories.render_image(json.loads(records[0])) == data
