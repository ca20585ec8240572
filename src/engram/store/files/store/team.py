import os
from collections.abc import Container, Sequence
from pathlib import Path

from engram.model.errors import EngramError, NotFound, Refused, StoreReadOnly
from engram.store.files import memories
from engram.store.files.reconcile.context import IndexContext
from engram.store.files.reconcile.team_trust import content_digest, save_trust, team_content, trusted_digests
from engram.store.files.store.backend import FilesStore
from engram.store.reports import TeamFile
from engram.store.scopes import decoded_settings, is_plain_folder, repository_of, settings_folder, team_folder


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


def team_files(context: IndexContext, folder: Path) -> list[TeamFile]:
    """Every file of a team store, and the repository's settings, with their trust."""
    known = trusted_digests(context, folder)
    return [_team_file(path, known) for path in _paths(folder)]


def waiting_files(context: IndexContext, folder: Path) -> list[TeamFile]:
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


def distrust(store: "FilesStore", directory: Path) -> None:
    """Stop trusting anything in the team store."""
    folder = settings_folder(directory)
    save_trust(store.context, folder, ())
    store.sync_team(folder, again=True)
