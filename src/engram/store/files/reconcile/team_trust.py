"""Team stores: a repository's `.engram/engrams`, read only after the reader trusted exactly this content (as direnv does)."""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import read_bytes, replace_file
from engram.model.errors import EngramError, StoreCorrupt
from engram.store.files import memories
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.context import IndexContext
from engram.store.scopes import (
    TRUST_FILE,
    trusted_by_folder,
)

if TYPE_CHECKING:
    pass

LARGEST_FILE = 4_000_000
"""Largest team file in bytes: a clone is opened before anyone has reviewed it."""


def team_content(path: Path) -> bytes:
    """The content of a team file. Raises `StoreCorrupt` for a link, a non-file, and a file that is too large."""
    found = stamp_of(path)
    if found is not None and found.size > LARGEST_FILE:
        raise StoreCorrupt(f"{path}: {found.size:,} bytes; a team file may have at most {LARGEST_FILE:,}")
    return memories.content(path)


def content_digest(data: bytes) -> str:
    """The digest by which a file's content is trusted."""
    return hashlib.sha256(data).hexdigest()


def trusted_digests(context: IndexContext, folder: Path | str) -> frozenset[str]:
    """The digests the reader trusts in a folder, read again when the file has changed."""
    stamp = stamp_of(context.home.state / TRUST_FILE)
    if context.trust is None or context.trust[0] != stamp:
        by_folder = trusted_by_folder(context.home.state)
        context.trust = stamp, {name: frozenset(digests) for name, digests in by_folder.items()}
    return context.trust[1].get(str(folder), frozenset())


def save_trust(context: IndexContext, folder: Path, digests: Iterable[str]) -> None:
    """Trust exactly these contents of a folder."""
    with context.lock.hold():
        everything = trusted_by_folder(context.home.state)
        everything[str(folder)] = sorted(digests)
        path = context.home.state / TRUST_FILE
        replace_file(path, json.dumps(everything, indent=1).encode() + b"\n")
    context.trust = None


def trust_own_writes(context: IndexContext, written: Iterable[tuple[str, Stamp]]) -> None:
    """Trust what the reader's own decision wrote to team files.

    `written` are files with their stamps; one that has changed since is left out, because someone else wrote it.
    """
    for path, stamp in ((Path(stored), stamp) for stored, stamp in written):
        team = next((team for team in context.teams if path.is_relative_to(team)), "")
        if team:
            data = read_bytes(path)
            if stamp.has_same_content(stamp_of(path)):
                save_trust(context, Path(team), trusted_digests(context, team) | {content_digest(data)})


def team_of(context: IndexContext, stored: str) -> str:
    """The attached team store that contains a file, or ""."""
    return next((team for team in context.teams if stored.startswith(team + "/")), "")


def is_team(stored: str) -> bool:
    """Whether a file belongs to a team store, attached or not: its path is absolute."""
    return stored.startswith("/")


def is_attached(context: IndexContext, stored: str) -> bool:
    """Whether a file belongs to the store itself or to an attached team store: what is trusted elsewhere is not known."""
    return not is_team(stored) or bool(team_of(context, stored))


def is_trusted(context: IndexContext, stored: str, team: str = "") -> bool:
    """Whether the reader trusts the current content of a team file; `team` names a store that is not attached."""
    try:
        data = team_content(context.path(stored))
    except EngramError:
        return False
    return content_digest(data) in trusted_digests(context, team or team_of(context, stored))


def is_trusted_anywhere(context: IndexContext, stored: str) -> bool:
    """Whether a team file exists and is trusted, attached or not, so that its journal entry counts."""
    folder = next((f for f in trusted_by_folder(context.home.state) if stored.startswith(f + "/")), "")
    return bool(folder) and is_trusted(context, stored, folder)
