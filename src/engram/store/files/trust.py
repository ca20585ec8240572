"""Which contents of team files their reader trusts: digests by folder, in one small file."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from engram.model.errors import StoreCorrupt
from engram.store.files import memories
from engram.store.files.confinement import read_bytes
from engram.store.files.context import StoreContext
from engram.store.files.home import write_private
from engram.store.files.memories import Stamp, stamp_of
from engram.store.scopes import TRUST_FILE, trusted_by_folder

LARGEST_FILE = 4_000_000
"""Bytes of a team's file that are read at all: a clone is opened before anyone has looked at it."""


def content(path: Path) -> bytes:
    """The bytes of a team's file; StoreCorrupt for a link, for what is no file, and for one that is far too large."""
    found = stamp_of(path)
    if found is not None and found.size > LARGEST_FILE:
        raise StoreCorrupt(f"{path}: {found.size:,} bytes; a team's file has at most {LARGEST_FILE:,}")
    return memories.content(path)


def digest_of(data: bytes) -> str:
    """What stands for a file's content among the trusted ones."""
    return hashlib.sha256(data).hexdigest()


def trusted_digests(parts: StoreContext, folder: Path | str) -> frozenset[str]:
    """The digests of the contents a reader trusts in a folder, as any process left them last."""
    stamp = stamp_of(parts.home.state / TRUST_FILE)
    if parts.trust is None or parts.trust[0] != stamp:
        by_folder = trusted_by_folder(parts.home.state)
        parts.trust = stamp, {name: frozenset(digests) for name, digests in by_folder.items()}
    return parts.trust[1].get(str(folder), frozenset())


def save_trust(parts: StoreContext, folder: Path, digests: Iterable[str]) -> None:
    """Trust exactly these contents of a folder from now on."""
    with parts.lock.held():
        everything = trusted_by_folder(parts.home.state)
        everything[str(folder)] = sorted(digests)
        path = parts.home.state / TRUST_FILE
        fresh = path.with_name(f".trust.{os.getpid()}.tmp")
        write_private(fresh, json.dumps(everything, indent=1).encode() + b"\n")
        fresh.replace(path)
    parts.trust = None


def trust_own_writes(parts: StoreContext, written: Iterable[tuple[str, Stamp]]) -> None:
    """What the reader's own decision wrote to a team's file needs no second look by the same reader.

    `written` are files with their stamps: one that changed since holds what someone else wrote, which does.
    """
    for path, stamp in ((Path(stored), stamp) for stored, stamp in written):
        team = next((team for team in parts.teams if path.is_relative_to(team)), "")
        if team:
            data = read_bytes(path)
            if stamp_of(path) == stamp:
                save_trust(parts, Path(team), trusted_digests(parts, team) | {digest_of(data)})
