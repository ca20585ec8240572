"""A repository's own `.engram/engrams`: read only after its reader trusted that very content (as direnv does)."""

import hashlib
import json
import os
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import read_bytes, replace_file
from engram.model.errors import EngramError, NotFound, Refused, StoreCorrupt, StoreReadOnly
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.context import StoreContext
from engram.store.files.memories import Stamp, stamp_of
from engram.store.scopes import (
    TRUST_FILE,
    decoded_settings,
    is_plain_folder,
    repository_of,
    team_folder,
    trusted_by_folder,
)

if TYPE_CHECKING:
    from engram.store.files.store import FilesStore

LARGEST_FILE = 4_000_000
"""Bytes of a team's file that are read at all: a clone is opened before anyone has looked at it."""


def team_content(path: Path) -> bytes:
    """The bytes of a team's file; StoreCorrupt for a link, for what is no file, and for one that is far too large."""
    found = stamp_of(path)
    if found is not None and found.size > LARGEST_FILE:
        raise StoreCorrupt(f"{path}: {found.size:,} bytes; a team's file has at most {LARGEST_FILE:,}")
    return memories.content(path)


def content_digest(data: bytes) -> str:
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
        replace_file(path, json.dumps(everything, indent=1).encode() + b"\n")
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
                save_trust(parts, Path(team), trusted_digests(parts, team) | {content_digest(data)})


@dataclass(frozen=True, slots=True)
class TeamFile:
    """A file of a team store: whether its reader trusts its content and, where that is to be decided, what it says."""

    path: Path
    digest: str
    trusted: bool
    memories: tuple[Memory, ...] = ()
    error: str = ""
    settings: str = ""
    """The text of the repository's settings, where this is their file."""


def attach_team(store: "FilesStore", directory: Path) -> None:
    """Let the store see the team store of a directory's repository; before it is trusted, nothing of it takes part."""
    folder = team_folder(directory)
    if folder is None or str(folder) in store.parts.teams:
        return
    store.parts.teams.add(str(folder))
    store.sync_team_if_free(folder)
    waiting = [f for f in waiting_files(store.parts, folder) if not f.error]
    if waiting:
        store.parts.warnings.append(
            f"{folder.parent} holds {len(waiting)} file(s) you have not trusted; nothing of them is used. "
            f"Read them, then run `engram trust`."
        )


def begin_team(store: "FilesStore", directory: Path) -> Path:
    """The team store of a directory's repository, made where there is none."""
    top = repository_of(directory)
    if top is None:
        raise NotFound(f"{directory} lies in no repository; a team's memories are kept in one, beside its code")
    folder = top / ".engram" / "engrams"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot make {folder}: {error.strerror}") from error
    if team_folder(directory) is None:
        raise Refused(f"{folder} is a link; a team's memories stay inside their repository: make it a folder")
    attach_team(store, directory)
    return folder


def team_files(parts: StoreContext, folder: Path) -> list[TeamFile]:
    """Every file of a team store, and the repository's settings, with their trust."""
    known = trusted_digests(parts, folder)
    return [_team_file(path, known) for path in _paths(folder)]


def waiting_files(parts: StoreContext, folder: Path) -> list[TeamFile]:
    """Those that are not trusted as they are now."""
    return [file for file in team_files(parts, folder) if not file.trusted]


def _paths(folder: Path) -> list[Path]:
    found = [config] if os.path.lexists(config := folder.parent / "config.toml") else []
    return [*found, *memories.memory_files(folder)] if is_plain_folder(folder) else found


def _team_file(path: Path, known: Container[str]) -> TeamFile:
    try:
        data = team_content(path)
        digest = content_digest(data)
        if digest in known:
            return TeamFile(path, digest, True)
        if path.suffix == ".toml":
            return TeamFile(path, digest, False, settings=decoded_settings(data, path))
        return TeamFile(path, digest, False, tuple(memories.parse(data, path)))
    except (EngramError, OSError) as error:
        return TeamFile(path, "", False, error=str(error))


def trust(store: "FilesStore", directory: Path, listed: Sequence[TeamFile] | None = None) -> list[TeamFile]:
    """Trust these files with the content they were read with, or all as they are now; return what was not trusted before.

    Files that were trusted before stay so while their content stands.
    """
    folder = settings_folder(directory)
    files = team_files(store.parts, folder)
    new = [file for file in files if not file.trusted] if listed is None else listed
    save_trust(store.parts, folder, {f.digest for f in (*files, *new) if f.digest and (f.trusted or f in new)})
    store.sync_team(folder, again=True)
    return list(new)


def settings_folder(directory: Path) -> Path:
    """Where a repository has its team store, there or not; NotFound where it has neither memories nor settings."""
    top = repository_of(directory)
    if top is None or not is_plain_folder(top / ".engram"):
        raise NotFound(f"{directory} lies in no repository that has memories or settings of its own (.engram)")
    return top / ".engram" / "engrams"


def distrust(store: "FilesStore", directory: Path) -> None:
    """Trust nothing of the team store any more."""
    folder = settings_folder(directory)
    save_trust(store.parts, folder, ())
    store.sync_team(folder, again=True)
