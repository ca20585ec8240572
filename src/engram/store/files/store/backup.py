"""Backup and restore: the whole store as one compressed archive with checksums, without the derived index."""

import hashlib
import io
import json
import lzma
import os
import tarfile
import zlib
from datetime import UTC, datetime
from pathlib import Path

from engram.disk import DIRECTORY_MODE, MALFORMED, UNREADABLE, remove_leftovers, sync_path, temporary_path
from engram.model.errors import InvalidInput, StoreCorrupt, StoreReadOnly
from engram.store.files.lock import WriterLock
from engram.store.files.log.journal import decode
from engram.store.files.store.purge_plan import MARKER_FILE
from engram.store.home import FOLDERS, Home, PointsOutside, memory_file

MANIFEST = "MANIFEST.json"
_LEFT_OUT = {"lock"}


def backup(home: Home, target: Path, now: datetime, problems: list[str]) -> dict[str, int]:
    """Write the whole store to one archive under the writer lock; returns counts.

    An unreadable file is left out and added to `problems`.
    """
    remove_leftovers(target.parent)
    fresh = Path(temporary_path(target))
    with WriterLock(home.lock).hold():
        files = [p for p in sorted(home.root.rglob("*")) if p.is_file() and not p.is_symlink() and _belongs(home, p)]
        sums: dict[str, str] = {}
        try:
            with tarfile.open(fresh, "w:gz", compresslevel=6) as archive:
                for path in files:
                    name = path.relative_to(home.root).as_posix()
                    try:
                        data, changed = path.read_bytes(), path.stat().st_mtime
                    except OSError as error:
                        problems.append(f"{path}: left out of the backup, cannot be read ({error.strerror})")
                        continue
                    sums[name] = hashlib.sha256(data).hexdigest()
                    _put(archive, name, data, changed)
                manifest = {"made": now.astimezone(UTC).isoformat(), "files": sums}
                _put(archive, MANIFEST, json.dumps(manifest, indent=1).encode(), now.timestamp())
            fresh.chmod(0o600)
            fresh.replace(target)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise StoreReadOnly(f"cannot write the backup {target}: {error.strerror}") from error
    return {"files": len(sums), "bytes": target.stat().st_size}


def _belongs(home: Home, path: Path) -> bool:
    parts = path.relative_to(home.root).parts
    return parts[0] not in _LEFT_OUT and not path.name.endswith(".tmp")


def _put(archive: tarfile.TarFile, name: str, data: bytes, mtime: float) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode, info.mtime = len(data), 0o600, int(mtime)
    archive.addfile(info, io.BytesIO(data))


def restore(source: Path, root: Path, *, force: bool = False) -> dict[str, int]:
    """Check and unpack a backup into an empty place; `force` first renames a store that is there."""
    if not source.is_file():
        raise InvalidInput(f"{source} is not a file; give the archive that `engram backup` wrote")
    staging = root.with_name(f".{root.name}.restore.{os.getpid()}")
    staging.mkdir(mode=DIRECTORY_MODE, parents=True)
    try:
        count = _unpack(source, staging)
        if root.exists() and any(root.iterdir()):
            if not force:
                raise InvalidInput(
                    f"{root} is not empty; give another --home, or --force to set it aside as {root}.before-restore"
                )
            aside = _free_name(root)
            root.rename(aside)
        elif root.exists():
            root.rmdir()
        staging.rename(root)
        sync_path(root.parent)
    finally:
        if staging.exists():
            import shutil

            shutil.rmtree(staging)
    return {"files": count}


def _free_name(root: Path) -> Path:
    number = 0
    while True:
        aside = root.with_name(f"{root.name}.before-restore{f'-{number}' if number else ''}")
        if not aside.exists():
            return aside
        number += 1


def _unpack(source: Path, staging: Path) -> int:
    try:
        with tarfile.open(source, "r:*") as archive:
            manifest = _checked_manifest(archive)
            archive.extractall(staging, filter="data")
    except (tarfile.TarError, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, KeyError, TypeError) as error:
        raise StoreCorrupt(f"{source} is not a complete Engram backup ({error}); nothing was restored") from None
    for name, expected in manifest.items():
        if hashlib.sha256((staging / name).read_bytes()).hexdigest() != expected:
            raise StoreCorrupt(f"{source}: {name} is damaged; nothing was restored")
    (staging / MANIFEST).unlink()
    _check_history(staging, source)
    for path in [staging, *staging.rglob("*")]:
        path.chmod(DIRECTORY_MODE if path.is_dir() else 0o600)
    for name in FOLDERS:
        (staging / name).mkdir(mode=DIRECTORY_MODE, exist_ok=True)
    # A restored file lost to a power loss would count as removed by hand.
    for path in [staging, *staging.rglob("*")]:
        sync_path(path)
    return len(manifest)


def _check_history(staging: Path, source: Path) -> None:
    """Refuse a journal or purge marker with paths outside the store. Unreadable lines are left to `engram doctor`."""
    for path in sorted((staging / "journal").glob("*.jsonl")):
        for number, line in enumerate(path.read_bytes().splitlines(), 1):
            try:
                decode(json.loads(line))
            except PointsOutside as error:
                raise StoreCorrupt(f"{source}: journal/{path.name}:{number}: {error}; nothing was restored") from None
            except MALFORMED:
                continue
    try:
        begun = json.loads((staging / "state" / MARKER_FILE).read_bytes())
        for file in begun.get("files", ()):
            memory_file(file)
    except PointsOutside as error:
        raise StoreCorrupt(f"{source}: state/{MARKER_FILE}: {error}; nothing was restored") from None
    except UNREADABLE:
        return


def _checked_manifest(archive: tarfile.TarFile) -> dict[str, str]:
    """The checksums, if the archive contains exactly the plain files they belong to."""
    members = archive.getmembers()
    file = archive.extractfile(MANIFEST)
    manifest: dict[str, str] = dict(json.load(file)["files"]) if file is not None else {}
    odd = [member.name for member in members if not member.isreg()]
    if odd or sorted(member.name for member in members) != sorted([*manifest, MANIFEST]):
        raise ValueError(f"its content does not match its manifest{f': {odd[0]}' if odd else ''}")
    if "store.json" not in manifest:
        raise ValueError("it contains no store.json")
    return manifest
