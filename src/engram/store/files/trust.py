"""Which contents of team files their reader trusts: digests by folder, in one small file."""

import hashlib
import json
import os
from collections.abc import Iterable
from pathlib import Path

from engram.store.files.confinement import read_bytes
from engram.store.files.home import write_private
from engram.store.files.parts import Parts
from engram.store.scope_of import TRUST_FILE, trusted_by_folder


def trusted_digests(parts: Parts, folder: Path) -> set[str]:
    """The digests of the contents a reader trusted in a folder."""
    return set(trusted_by_folder(parts.home.state).get(str(folder), []))


def save_trust(parts: Parts, folder: Path, digests: set[str]) -> None:
    """Trust exactly these contents of a folder from now on."""
    with parts.lock.held():
        everything = trusted_by_folder(parts.home.state)
        everything[str(folder)] = sorted(digests)
        path = parts.home.state / TRUST_FILE
        fresh = path.with_name(f".trust.{os.getpid()}.tmp")
        write_private(fresh, json.dumps(everything, indent=1).encode() + b"\n")
        fresh.replace(path)
    parts.teams[str(folder)] = frozenset(digests)


def trust_own_writes(parts: Parts, stored: Iterable[str]) -> None:
    """What the reader's own decision wrote to a team's file needs no second look by the same reader."""
    for path in map(Path, stored):
        team = next((team for team in parts.teams if path.is_relative_to(team)), "")
        if team:
            digest = hashlib.sha256(read_bytes(path)).hexdigest()
            save_trust(parts, Path(team), trusted_digests(parts, Path(team)) | {digest})
