"""A repository's own `.engram/engrams`: read only after its reader trusted that very content (as direnv does)."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from engram.model.errors import EngramError, NotFound, StoreReadOnly
from engram.model.memory import Memory
from engram.store.files import memories
from engram.store.files.confinement import refuse_links
from engram.store.files.parts import Parts
from engram.store.files.store import FilesStore
from engram.store.files.trust import save_trust, trusted_digests
from engram.store.scope_of import repository_of, team_folder


@dataclass(frozen=True, slots=True)
class TeamFile:
    """A file of a team store: what it says, and whether its reader trusts this content."""

    path: Path
    digest: str
    trusted: bool
    memories: tuple[Memory, ...]
    error: str = ""


def attach_team(store: FilesStore, directory: Path) -> None:
    """Let the store see the team store of a directory's repository; nothing of it is found before it is trusted."""
    folder = team_folder(directory)
    if folder is None or str(folder) in store.parts.teams:
        return
    store.parts.teams[str(folder)] = frozenset(trusted_digests(store.parts, folder))
    store.sync_team_if_free(folder)
    waiting = [f for f in team_files(store.parts, folder) if not f.trusted and not f.error]
    if waiting:
        store.parts.warnings.append(
            f"{folder.parent} holds {len(waiting)} file(s) you have not trusted; nothing of them is used. "
            f"Read them, then run `engram trust`."
        )


def begin_team(store: FilesStore, directory: Path) -> Path:
    """The team store of a directory's repository, made where there is none."""
    top = repository_of(directory)
    if top is None:
        raise NotFound(f"{directory} lies in no repository; a team's memories are kept in one, beside its code")
    folder = top / ".engram" / "engrams"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(f"cannot make {folder}: {error.strerror}") from error
    refuse_links(top, f"{folder}/")
    attach_team(store, directory)
    return folder


def team_files(parts: Parts, folder: Path) -> list[TeamFile]:
    """Every file of a team store, and the repository's settings, with their trust."""
    known = trusted_digests(parts, folder)
    found = [_config_file(config, known)] if (config := folder.parent / "config.toml").is_file() else []
    for place in memories.walk(folder):
        for path in sorted(place.iterdir()) if place.is_dir() else []:
            if memories.is_memory_file(path.name):
                found.append(_team_file(path, known))
    return found


def _config_file(path: Path, known: set[str]) -> TeamFile:
    try:
        digest = hashlib.sha256(memories.content(path)).hexdigest()
    except EngramError as error:
        return TeamFile(path, "", False, (), str(error))
    return TeamFile(path, digest, digest in known, ())


def _team_file(path: Path, known: set[str]) -> TeamFile:
    try:
        data = memories.content(path)
        read = tuple(memories.parse(data, path))
        digest = hashlib.sha256(data).hexdigest()
    except (EngramError, OSError) as error:
        return TeamFile(path, "", False, (), str(error))
    return TeamFile(path, digest, digest in known, read)


def trust(store: FilesStore, directory: Path) -> list[TeamFile]:
    """Trust what the team store holds now; return what was not trusted before."""
    folder = _trusted_folder(directory)
    files = team_files(store.parts, folder)
    save_trust(store.parts, folder, {f.digest for f in files if f.digest})
    store.sync_team(folder, again=True)
    return [f for f in files if not f.trusted]


def _trusted_folder(directory: Path) -> Path:
    top = repository_of(directory)
    if top is None or not (top / ".engram").is_dir():
        raise NotFound(f"{directory} lies in no repository that has memories or settings of its own (.engram)")
    return top / ".engram" / "engrams"


def distrust(store: FilesStore, directory: Path) -> None:
    """Trust nothing of the team store any more."""
    folder = _trusted_folder(directory)
    save_trust(store.parts, folder, set())
    store.sync_team(folder, again=True)
