"""The store's directory: its paths, the checks of paths read from data, and whether this Engram may use it.

A store may come from anyone, so a path read from data is not followed before `memory_file` has checked it, and nothing
is written through a folder that is a link.
"""

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Iterable
from pathlib import Path

from engram.disk import (
    DIRECTORY_MODE,
    UNREADABLE,
    digest_name,
    expand_home,
    read_bytes,
    replace_file,
    sync_path,
    write_temporary,
)
from engram.model.errors import InvalidInput, StoreCorrupt, StoreReadOnly, UnknownVersion
from engram.model.lazy import cached_property, dataclass, lazy_pattern

FORMAT = 2
"""The newest store format that this Engram opens. A store is created with format 1; its first requirement makes it 2."""
LEDGER_DIGEST_2, LEDGER_OWNER = "ledger-digest-2", "ledger-owner"
FEATURES = {
    LEDGER_DIGEST_2: "digests of events that cover their task",
    LEDGER_OWNER: "digests of events that cover their owner",
}
"""The features that a store may require of its reader.

Each covers something that an earlier Engram would misread or could not verify.

Its writer adds the feature to `store.json` before the first use (`Requirements.add`), and an Engram that does not know
it refuses the store.
"""
_WITH_REQUIREMENTS = 2
"""The format from which on `store.json` lists requirements; earlier versions of Engram refuse it by its number."""
INDEX_SCHEMA = 9
_LONGEST_NAME = 120
_SAFE_NAME = lazy_pattern(rf"[A-Za-z0-9@:+,=_ -]{{1,{_LONGEST_NAME}}}")
_OWN_FILE = lazy_pattern(r"engrams(?:/(?!\.)[^/\0]+)+\.ya?ml")
_TEAM_FILE = lazy_pattern(r"/(?:[^\0]*/)?\.engram/engrams(?:/(?!\.)[^/\0]+)+\.ya?ml")
CONFIG = "config.toml"
FOLDERS = ("engrams", "journal", "usage", "ledger", "state", "quarantine")
"""The folders of a new store."""
_LATER = ("tasks", "state/sessions", "state/jobs", "state/named", "state/spend")


@dataclass(frozen=True)
class Home:
    """Paths of one store, each built once. Create it with `open_home`."""

    root: Path
    store_id: str
    cache: Path

    @cached_property
    def engrams(self) -> Path:
        """One file per memory."""
        return self.root / "engrams"

    @cached_property
    def journal(self) -> Path:
        """Decisions, one per line."""
        return self.root / "journal"

    @cached_property
    def usage(self) -> Path:
        """Uses of memories, one per line."""
        return self.root / "usage"

    @cached_property
    def ledger(self) -> Path:
        """Events, one file per session or task."""
        return self.root / "ledger"

    @cached_property
    def tasks(self) -> Path:
        """Runs of long work and their checkpoints."""
        return self.root / "tasks"

    @cached_property
    def state(self) -> Path:
        """Small state that is neither memory nor index: sessions, trust, pause."""
        return self.root / "state"

    @cached_property
    def quarantine(self) -> Path:
        """Unreadable lines of Engram's own logs, unchanged."""
        return self.root / "quarantine"

    @cached_property
    def lock(self) -> Path:
        """The file of the writer lock."""
        return self.root / "lock"

    @cached_property
    def config(self) -> Path:
        """The owner's settings."""
        return self.root / CONFIG

    @property
    def index(self) -> Path:
        """This schema version's index folder."""
        return self.cache / self.store_id / f"v{INDEX_SCHEMA}"


def default_root() -> Path:
    """$ENGRAM_HOME, else $XDG_DATA_HOME/engram, else ~/.local/share/engram."""
    return _from_environment("ENGRAM_HOME", "XDG_DATA_HOME", ".local/share")


def default_cache() -> Path:
    """$ENGRAM_CACHE, else $XDG_CACHE_HOME/engram, else ~/.cache/engram."""
    return _from_environment("ENGRAM_CACHE", "XDG_CACHE_HOME", ".cache")


def _from_environment(own: str, xdg: str, fallback: str) -> Path:
    if os.environ.get(own):
        return expanded(Path(os.environ[own]), f"${own}")
    base = Path(os.environ.get(xdg, ""))
    # The XDG specification says to ignore a relative path; it would mean another store in every directory.
    return (base if base.is_absolute() else _user_home(own) / fallback) / "engram"


def _user_home(own: str) -> Path:
    try:
        found = Path.home()
    except RuntimeError:
        raise InvalidInput(f"this user has no home directory; set ${own} to where Engram should live") from None
    if not found.is_absolute():
        raise InvalidInput(f"$HOME is {str(found)!r}, which is not an absolute path; correct it, or set ${own}")
    return found


def config_of(root: Path | None = None) -> Path:
    """The settings file of the store that `open_home` would open; nothing is created."""
    root = _root(root)
    card = root / "store.json"
    if _is_present(card):
        _read_card(card)
    return root / CONFIG


def _root(root: Path | None) -> Path:
    return expanded(root or default_root(), "the store").absolute()


expanded = expand_home


def open_home(root: Path | None = None, cache: Path | None = None, *, create: bool = True) -> Home:
    """Find or create the store's directory. Raises `UnknownVersion` if a newer Engram wrote it."""
    root = _root(root)
    cache = expanded(cache or default_cache(), "the cache").absolute()
    card = root / "store.json"
    if not _is_present(card):
        if not create:
            raise StoreCorrupt(f"{root} is not an Engram store (no store.json); run `engram init` to create one")
        _create(root, card)
    fields = _read_card(card)
    refuse_linked_folders(root, (*FOLDERS, *_LATER))
    where = hashlib.sha256(os.fsencode(root.resolve())).hexdigest()[:8]
    return Home(root, f"{fields['id']}-{where}", cache)


def _is_present(card: Path) -> bool:
    try:
        card.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise StoreReadOnly(f"cannot read {card.parent}: {error.strerror}; choose another with --home") from error
    return True


def _create(root: Path, card: Path) -> None:
    try:
        known = next((folder for folder in root.parents if folder.exists()), root)
        for name in FOLDERS:
            (root / name).mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        root.chmod(DIRECTORY_MODE)
        content = json.dumps({"format": 1, "id": os.urandom(6).hex()}).encode() + b"\n"
        fresh, _ = write_temporary(card, content, sync=True)
        try:
            with contextlib.suppress(FileExistsError):
                os.link(fresh, card)
        finally:
            Path(fresh).unlink()
        for folder in (root, *_folders_above(root, known)):
            with contextlib.suppress(PermissionError):
                sync_path(folder)
    except OSError as error:
        raise StoreReadOnly(f"cannot create a store in {root}: {error.strerror}; choose another with --home") from error


def _folders_above(root: Path, known: Path) -> list[Path]:
    """The folders above a store, up to the first that already existed."""
    above = list(root.parents)
    return above[: above.index(known) + 1] if known in above else []


def _read_card(card: Path) -> dict[str, str]:
    try:
        fields = json.loads(read_bytes(card))
        found, store_id = int(fields["format"]), str(fields["id"])
        unknown = sorted({str(name) for name in fields.get("requires", ())} - FEATURES.keys())
    except UNREADABLE as error:
        raise StoreCorrupt(
            f"{card} cannot be read ({error}); restore it from a backup, or delete it to start over"
        ) from None
    if found > FORMAT:
        raise UnknownVersion(
            f"{card} has store format {found}; this Engram knows up to {FORMAT}. Upgrade Engram to open this store."
        )
    if unknown:
        raise UnknownVersion(
            f"{card} requires {', '.join(unknown):.200}, which this Engram does not know: a newer one wrote what this one "
            "cannot verify. Upgrade Engram to open this store."
        )
    return {"id": re.sub(r"[^0-9a-zA-Z-]", "", store_id) or "store"}


class Requirements:
    """The features that a store requires of its readers; `store.json` lists them."""

    def __init__(self, root: Path) -> None:
        self._card = root / "store.json"
        self._listed: frozenset[str] = frozenset()

    def add(self, features: Iterable[str]) -> None:
        """List features durably, before their first use. The caller holds the writer lock. Raises `OSError`."""
        wanted = frozenset(features)
        if wanted <= self._listed:
            return
        fields = json.loads(read_bytes(self._card))
        listed = wanted.union(fields.get("requires", ()))
        if listed != set(fields.get("requires", ())):
            fields |= {"format": max(fields["format"], _WITH_REQUIREMENTS), "requires": sorted(listed)}
            replace_file(self._card, json.dumps(fields).encode() + b"\n")
        self._listed = listed


class FormatGuard:
    """Notices that a newer Engram changed the store's format while this process has it open."""

    def __init__(self, root: Path) -> None:
        self._card = root / "store.json"
        self._seen = self._stamp()

    def __call__(self) -> None:
        """Raises `UnknownVersion` for a format that this Engram does not know; costs one check of the file."""
        stamp = self._stamp()
        if stamp != self._seen and stamp is not None:
            _read_card(self._card)
            self._seen = stamp

    def _stamp(self) -> tuple[int, ...] | None:
        try:
            found = self._card.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size, found.st_ino


def scope_folder(scope: str) -> str:
    """The name of a scope's folder below `engrams/`."""
    return "session" if scope.startswith("session:") else file_name(scope)


def file_name(identifier: str) -> str:
    """An id or scope as a file name that stays in its folder: people write both by hand."""
    if _SAFE_NAME.fullmatch(identifier):
        return identifier
    from urllib.parse import quote

    name = quote(identifier, safe="@:+,=_-. ").replace("..", "%2E%2E")
    if name.startswith("."):
        name = "%2E" + name[1:]
    return digest_name(identifier, name[:80]) if len(name) > _LONGEST_NAME else name


class PointsOutside(ValueError):
    """Data names a file outside the places where memory files can be."""


def memory_file(stored: object) -> str:
    """Check the path of a memory file read from data: below `engrams/`, or below `.engram/engrams/` of a repository.

    Returns it unchanged, or "" for a memory without a file. Raises `PointsOutside` for other paths.
    """
    if stored == "":
        return ""
    if not isinstance(stored, str) or not (_OWN_FILE.fullmatch(stored) or _TEAM_FILE.fullmatch(stored)):
        raise PointsOutside(
            f"it names the file {stored!r:.200}, but a memory file is a .yaml file below engrams/ of the store"
        )
    os.fsencode(stored)
    return stored


def refuse_links(root: Path | str, stored: str) -> None:
    """Raise `StoreReadOnly` if a folder on the path to a file of the store, or of a team store, is a link."""
    base, inside = str(root), stored
    if stored.startswith("/"):
        base, _, inside = stored.rpartition("/.engram/engrams/")
        inside = f".engram/engrams/{inside}"
    for part in inside.split("/")[:-1]:
        base = f"{base}/{part}"
        if os.path.islink(base):  # noqa: PTH114 -- at every write
            raise StoreReadOnly(
                f"{base} is a symbolic link, and Engram does not read or write through it; replace it with a folder"
            )


def refuse_linked_folders(root: Path, names: Iterable[str]) -> None:
    """Raise `StoreCorrupt` if one of a store's own folders is a link: anything written there would end up elsewhere."""
    for name in names:
        if (root / name).is_symlink():
            raise StoreCorrupt(
                f"{root / name} is a symbolic link; Engram does not write through it. Replace it with a folder, or link "
                "the whole store"
            )
