"""Operations only for a store of files: team stores, repair without opening, and restoring a backup."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput
from engram.store.defaults import utc_now
from engram.store.home import Home
from engram.store.protocol import Store
from engram.store.scopes import settings_folder

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder
    from engram.store.files.store.backend import FilesStore
    from engram.store.reports import TeamFile


def open_files(
    home: Home, embedder: "Embedder | None", *, directory: Path, clock: Callable[[], datetime] = utc_now
) -> Store:
    """The store of a home, with the team store of a directory's repository."""
    from engram.store.files.store.backend import FilesStore, attach_team

    store = FilesStore(home, embedder, clock=clock)
    attach_team(store, directory)
    return store


def has_files(store: Store) -> bool:
    """Whether the memories of a store are files on this machine."""
    from engram.store.files.store.backend import FilesStore

    return isinstance(store, FilesStore)


# -- team stores


def begin_team(store: Store, directory: Path) -> Path:
    """The team store of a directory's repository, created if there is none."""
    from engram.store.files.store import backend

    return backend.begin_team(_files(store), directory)


def waiting_files(store: Store, directory: Path) -> "list[TeamFile]":
    """The files of a repository's team store whose current content is not trusted."""
    from engram.store.files.store import backend

    return backend.waiting_files(_files(store).context, settings_folder(directory))


def trust_files(store: Store, directory: Path, listed: "Sequence[TeamFile]") -> None:
    """Trust these files with the content they were listed with."""
    from engram.store.files.store import backend

    backend.trust_team_files(_files(store), directory, listed)


def distrust_files(store: Store, directory: Path) -> None:
    """Stop trusting anything in a repository's team store."""
    from engram.store.files.store import backend

    backend.distrust_team(_files(store), directory)


def _files(store: Store) -> "FilesStore":
    from engram.store.files.store.backend import FilesStore

    if not isinstance(store, FilesStore):
        raise InvalidInput(
            "A team's memories are files in its repository, which a server does not read; name a store of files "
            "with --home DIR, or import them with `engram import DIR/.engram/engrams`"
        )
    return store


# -- without opening the store


def repair_logs(home: Home) -> list[str]:
    """Move unreadable journal lines and a damaged purge marker to quarantine and accept missing decisions; returns messages.

    A journal with an unreadable line keeps the store from opening, so this works on its files alone.
    """
    from engram.store.files.lock import WriterLock
    from engram.store.files.log.journal import Journal
    from engram.store.files.store.health import accept_gaps
    from engram.store.files.store.purge_plan import set_aside_damaged
    from engram.store.sqlite.connection import discard

    with WriterLock(home.lock).hold():
        journal = Journal(home.journal, home.quarantine)
        moved = journal.repair()
        if moved:
            discard(home.index / "index.db")
        return [*moved, *accept_gaps(home, journal), *set_aside_damaged(home)]


def restore_backup(archive: Path, root: Path, *, force: bool) -> dict[str, int]:
    """Restore an archive to a directory, after it was checked; `force` replaces an existing store."""
    from engram.store.files.store.backup import restore

    return restore(archive, root, force=force)
