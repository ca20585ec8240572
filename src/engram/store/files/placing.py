"""Putting a whole store where there is nothing, or a store that holds nothing."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from engram.model.errors import Refused
from engram.store.files.durability import FILE as MARK
from engram.store.files.journal import sync_directory

_FOLDERS = ("engrams", "journal", "usage", "ledger", "tasks", "state", "quarantine")
_FILES = (("store.json",), ("config.toml",), ("lock",), ("state", MARK))


def check_empty(root: Path) -> None:
    """Refuse a directory that holds anything but an empty store."""
    held = [path.relative_to(root) for path in _files_in(root)]
    if held:
        raise Refused(
            f"{root} is not empty ({held[0]}); a store is moved to a new or an empty directory, give another one"
        )


def _files_in(root: Path) -> Iterator[Path]:
    if root.is_file():
        raise Refused(f"{root} is a file; give a directory")
    for path in sorted(root.rglob("*")) if root.exists() else ():
        named = path.relative_to(root).parts
        if not (path.is_dir() and named[0] in _FOLDERS) and named not in _FILES:
            yield path


def put_in_place(staging: Path, root: Path) -> None:
    """Rename the whole store to its place; of an empty store that is there only the settings stay."""
    if root.exists():
        if (root / "config.toml").exists():
            shutil.copy2(root / "config.toml", staging / "config.toml")
        check_empty(root)
        shutil.rmtree(root)
    staging.rename(root)
    sync_directory(root.parent)
