"""Team stores: a repository's `.engram/engrams`, read only after the reader trusted exactly this content (as direnv does)."""

import hashlib
import json
import os
from collections.abc import Container, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import read_bytes, replace_file
from engram.model.errors import EngramError, NotFound, Refused, StoreCorrupt, StoreReadOnly
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.reconcile.context import StoreContext
from engram.store.scopes import (
    TRUST_FILE,
    decoded_settings,
    is_plain_folder,
    repository_of,
    team_folder,
    trusted_by_folder,
)

if TYPE_CHECKING:
    from engram.store.files.store.backend import FilesStore

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


def trusted_digests(context: StoreContext, folder: Path | str) -> frozenset[str]:
    """The digests the reader trusts in a folder, read again when the file has changed."""
    stamp = stamp_of(context.home.state / TRUST_FILE)
    if context.trust is None or context.trust[0] != stamp:
        by_folder = trusted_by_folder(context.home.state)
        context.trust = stamp, {name: frozenset(digests) for name, digests in by_folder.items()}
    return context.trust[1].get(str(folder), frozenset())


def save_trust(context: StoreContext, folder: Path, digests: Iterable[str]) -> None:
    """Trust exactly these contents of a folder."""
    with context.lock.held():
        everything = trusted_by_folder(context.home.state)
        everything[str(folder)] = sorted(digests)
        path = context.home.state / TRUST_FILE
        replace_file(path, json.dumps(everything, indent=1).encode() + b"\n")
    context.trust = None


def trust_own_writes(context: StoreContext, written: Iterable[tuple[str, Stamp]]) -> None:
    """Trust what the reader's own decision wrote to team files.

    `written` are files with their stamps; one that has changed since is left out, because someone else wrote it.
    """
    for path, stamp in ((Path(stored), stamp) for stored, stamp in written):
        team = next((team for team in context.teams if path.is_relative_to(team)), "")
        if team:
            data = read_bytes(path)
            if stamp.has_same_content(stamp_of(path)):
                save_trust(context, Path(team), trusted_digests(context, team) | {content_digest(data)})


@dataclass(frozen=True, slots=True)
class TeamFile:
    """A file of a team store: whether the reader trusts it and, if not, its content."""

    path: Path
    digest: str
    trusted: bool
    memories: tuple[Memory, ...] = ()
    error: str = ""
    settings: str = ""
    """The text of the repository's settings, if this is their file."""


def attach_team(store: "FilesStore", directory: Path) -> None:
    """Attach the team store of a directory's repository; untrusted files are not used."""
    folder = team_folder(directory)
    if folder is None or str(folder) in store.context.teams:
        return
    store.context.teams.add(str(folder))
    store.sync_team_if_free(folder)
    unused = waiting_files(store.context, folder)
    if broken := sum(1 for file in unused if file.error):
        store.context.warnings.append(
            f"{folder.parent} contains {broken} file(s) that cannot be read; they are not used. `engram trust` says why."
        )
    waiting = [file for file in unused if not file.error]
    if waiting:
        store.context.warnings.append(
            f"{folder.parent} contains {len(waiting)} file(s) you have not trusted; they are not used. "
            f"Read them, then run `engram trust`."
        )


def begin_team(store: "FilesStore", directory: Path) -> Path:
    """The team store of a directory's repository, created if there is none."""
    top = repository_of(directory)
    if top is None:
        raise NotFound(f"{directory} is not in a repository; team memories are kept in a repository, next to its code")
    folder = top / ".engram" / "engrams"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot create {folder}: {error.strerror}") from error
    if team_folder(directory) is None:
        raise Refused(f"{folder} is a link; team memories must stay inside their repository: replace it with a folder")
    attach_team(store, directory)
    return folder


def team_files(context: StoreContext, folder: Path) -> list[TeamFile]:
    """Every file of a team store, and the repository's settings, with their trust."""
    known = trusted_digests(context, folder)
    return [_team_file(path, known) for path in _paths(folder)]


def waiting_files(context: StoreContext, folder: Path) -> list[TeamFile]:
    """Files whose current content is not trusted."""
    return [file for file in team_files(context, folder) if not file.trusted]


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
    """Trust these files with the content they were listed with, or all as they are now; returns the newly trusted ones.

    Files trusted before stay trusted while their content is unchanged.
    """
    folder = settings_folder(directory)
    files = team_files(store.context, folder)
    new = [file for file in files if not file.trusted] if listed is None else listed
    save_trust(store.context, folder, {f.digest for f in (*files, *new) if f.digest and (f.trusted or f in new)})
    store.sync_team(folder, again=True)
    return list(new)


def settings_folder(directory: Path) -> Path:
    """The folder of a repository's team store, which may not exist. Raises `NotFound` without a repository or `.engram`."""
    top = repository_of(directory)
    if top is None or not is_plain_folder(top / ".engram"):
        raise NotFound(f"{directory} is not in a repository with team memories or settings (.engram)")
    return top / ".engram" / "engrams"


def distrust(store: "FilesStore", directory: Path) -> None:
    """Stop trusting anything in the team store."""
    folder = settings_folder(directory)
    save_trust(store.context, folder, ())
    store.sync_team(folder, again=True)
