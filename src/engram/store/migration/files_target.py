"""A directory as the target of a migration: filled under another name, and renamed when it is complete.

This keeps others from opening it half-filled. When a migration resumes, logs are truncated to the end of the last
complete batch; everything else can safely be written twice.
"""

import contextlib
import json
import os
import shutil
import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.disk import UNREADABLE, append_durably, read_bytes, replace_file, sync_path, torn_tail
from engram.model.errors import EmbedderError, Refused, StoreReadOnly
from engram.model.memory import Memory
from engram.model.records import Event, Use
from engram.store.defaults import random_hex, utc_now
from engram.store.documents import meaning_digest
from engram.store.files import memories
from engram.store.files.lock import WriterLock
from engram.store.files.log import journal
from engram.store.files.log.journal import MARK_FILE, Journal, Usage
from engram.store.files.log.ledger import Ledger
from engram.store.files.memories import stamp_of
from engram.store.files.reconcile.index_state import IndexContext
from engram.store.files.states import named
from engram.store.files.states import named as named_states
from engram.store.files.states import work as session_files
from engram.store.files.states import work as task_files
from engram.store.home import Home, open_home
from engram.store.migration.records import JournalRecord, MemoryImage, MigrationState, StateSnapshot, VectorsById
from engram.store.protocol import Progress
from engram.store.records import from_image
from engram.store.sqlite.index import Index
from engram.store.sqlite.writer import from_blob, to_blob

if TYPE_CHECKING:
    from engram.embedding.vectors import Embedder, Vectors


_FOLDERS = ("engrams", "journal", "usage", "ledger", "tasks", "state", "quarantine")
_FILES = (("store.json",), ("config.toml",), ("lock",), ("state", MARK_FILE))


def check_empty(root: Path) -> None:
    """Refuse a directory that contains anything but an empty store."""
    files = [path.relative_to(root) for path in _files_in(root)]
    if files:
        raise Refused(f"{root} is not empty ({files[0]}); give a new or an empty directory")


def _files_in(root: Path) -> Iterator[Path]:
    if root.is_file():
        raise Refused(f"{root} is a file; give a directory")
    for path in sorted(root.rglob("*")) if root.exists() else ():
        names = path.relative_to(root).parts
        if not (path.is_dir() and names[0] in _FOLDERS) and names not in _FILES:
            yield path


def put_in_place(staging: Path, root: Path) -> None:
    """Rename the complete store to its final path; of an empty store there, only the settings are kept."""
    if root.exists():
        if (root / "config.toml").exists():
            shutil.copy2(root / "config.toml", staging / "config.toml")
        check_empty(root)
        shutil.rmtree(root)
    staging.rename(root)
    sync_path(root.parent)


STATE, VECTORS = "moving.json", "moved-vectors.db"


class FilesTarget:
    """Fills a directory. `close` releases it, complete or not."""

    def __init__(self, root: Path, embedder: "Embedder | None") -> None:
        self._root, self._embedder = root.expanduser().absolute(), embedder
        self._staging = self._root.with_name(f".{self._root.name}.moving")
        self._open = contextlib.ExitStack()
        self._state = MigrationState("")
        self._seq = 0
        self.notes: list[str] = []
        self._places: dict[str, str] = {}

    def close(self) -> None:
        """Release the directory."""
        self._open.close()

    @property
    def embedder(self) -> str:
        """The embedder of its index."""
        return self._embedder.name if self._embedder is not None else ""

    # -- beginning and ending

    def begin(self, source: str) -> MigrationState:
        """Begin or continue the migration. Raises `Refused` if the directory is not empty."""
        placed, begun = self.check(source)
        if placed is not None:
            self._state = placed
            if not placed.finished:
                self.finish(lambda *_: None)
            return self._state
        if begun is None and self._staging.exists():
            # Interrupted before it saved its state.
            shutil.rmtree(self._staging)
        self._enter(begun or MigrationState(source))
        return self._state

    def check(self, source: str) -> tuple[MigrationState | None, MigrationState | None]:
        """The state of this migration in the final and in the staging directory. Raises `Refused` for other contents."""
        placed, begun = _state_of(self._root), _state_of(self._staging)
        for known, where in ((placed, self._root), (begun, self._staging)):
            if known is not None and known.source != source:
                raise Refused(
                    f"{where} is the target of a migration from {known.source}; give another directory, or remove it"
                )
        if placed is None:
            check_empty(self._root)
        return placed, begun

    def _enter(self, progress: MigrationState) -> None:
        try:
            self._root.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreReadOnly(f"cannot create {self._root.parent}: {error.strerror}") from error
        self._home = open_home(self._staging)
        self._open.enter_context(WriterLock(self._home.lock).hold(1.0))
        self._journal = Journal(self._home.journal, self._home.quarantine)
        self._usage = Usage(self._home.usage)
        self._ledger = Ledger(self._home.ledger, self._home.quarantine)
        self._vectors = VectorCache(self._home.state / VECTORS, self._embedder)
        self._open.callback(self._vectors.close)
        self._state = progress
        self._cut_back()
        for placed in self._journal.read():
            self._seq = placed.entry.seq
            self._places |= {change.id: change.file for change in placed.entry.changes if change.file}
        self._save_state()

    def finish(self, progress: Progress) -> None:
        """Move the store to its final path and build its index."""
        from engram.store.files.reconcile.recovery import remove_stray

        if _state_of(self._root) is None:
            os.sync()
            self.close()
            put_in_place(self._staging, self._root)
        home = open_home(self._root, create=False)
        self._build_index(home, progress)
        self._state.finished = True
        replace_file(home.state / STATE, json.dumps(asdict(self._state)).encode() + b"\n")
        (home.state / VECTORS).unlink(missing_ok=True)
        remove_stray(home.state)  # of a run that was killed

    def _build_index(self, home: Home, progress: Progress) -> None:
        from engram.store.files.reconcile.recovery import rebuild

        vectors = VectorCache(home.state / VECTORS, self._embedder)
        context = IndexContext(
            home=home,
            journal=Journal(home.journal, home.quarantine),
            usage=Usage(home.usage),
            ledger=Ledger(home.ledger, home.quarantine),
            index=Index(home.index, self.embedder, self._embedder.dim if self._embedder else 0),
            lock=WriterLock(home.lock),
            clock=utc_now,
            token=random_hex,
            warnings=[],
            embedder=vectors if self._embedder is not None else None,
        )
        try:
            with context.lock.hold():
                self.notes += rebuild(context, progress).problems
        except EmbedderError as error:
            self.notes.append(f"the index will be built when the store is first opened: {error}")
        finally:
            context.index.close()
            vectors.close()

    # -- received records

    def heads(self) -> Mapping[str, int]:
        """The number of each ledger's last event."""
        return {event.session: event.seq for name in self._ledger.sizes() for event in self._ledger.read(name)}

    def positions(self) -> "array[int]":
        """The positions of all uses."""
        return array("q", (use.position for use in self._usage.read()))

    # -- loading

    def load_snapshot(self, snapshot: StateSnapshot) -> None:
        """Write sessions, tasks, small states, verdicts and the pause. Tombstones and numbers are in the journal."""
        for session in snapshot.sessions:
            session_files.save_session(self._home, session)
        task_files.replace_all_tasks(self._home, snapshot.tasks, snapshot.checkpoints, snapshot.jobs)
        named_states.replace_all_states(self._home, snapshot.states)
        lines = [
            json.dumps({"at": v.at.astimezone(UTC).isoformat(), "gate": v.gate, "outcome": v.outcome})
            for v in snapshot.verdicts
        ]
        if lines:
            replace_file(self._home.state / named.VERDICTS_FILE, "".join(f"{line}\n" for line in lines).encode())
        named.pause(self._home, snapshot.paused)

    def load_uses(self, uses: Sequence[Use]) -> None:
        """Append uses; the offset of each in the file is its position."""
        for use in uses:
            self._usage.append(use)
        self._state.uses = uses[-1].position
        self._save_state()

    def journal_writer(self, records: Sequence[JournalRecord], vectors: VectorsById) -> Callable[[], None]:
        """A function that writes the records. Nothing is prepared in advance, because only the writing is slow."""
        return partial(self._load_journal, records, vectors)

    def _load_journal(self, records: Sequence[JournalRecord], vectors: VectorsById) -> None:
        """Write the journal, then the files of the memories."""
        self._vectors.add(vectors.values())
        month = (self._journal.months() or [""])[-1]
        lines: dict[str, list[bytes]] = {}
        for record in records:
            month = max(month, record.at.astimezone(UTC).strftime("%Y-%m"))
            lines.setdefault(month, []).append(journal.encode(self._entry(record)))
        for month, encoded in lines.items():
            append_durably(self._journal.path(month), b"".join(encoded))
        for one in (one for record in records for one in record.images):
            if one.stored is not None:
                path = self._home.root / self._place(one)
                memories.write(path, from_image(one.stored), stamp_of(path), one.stored)
        self._state.journal = records[-1].cursor
        self._save_state()

    def _entry(self, record: JournalRecord) -> journal.Entry:
        self._seq += 1
        changes = tuple(journal.AfterImage(one.id, one.after, one.team or self._place(one)) for one in record.images)
        return journal.Entry(
            self._seq, record.at, record.op, record.actor, record.reason, changes, record.session, record.extra
        )

    def _place(self, one: MemoryImage) -> str:
        """The file of a memory, which its first image determines."""
        if one.after is None:
            return ""
        if one.id not in self._places:
            scope = str(one.after.get("scope") or "global")
            path = memories.relative_path(Memory(id=one.id, statement="", scope=scope))
            self._places[one.id] = f"engrams/{path}"
        return self._places[one.id]

    def load_events(self, batch: Sequence[Event], vectors: VectorsById) -> None:
        """Append events to their ledgers."""
        self._vectors.add(vectors.values())
        by_ledger: dict[str, list[Event]] = {}
        for event in batch:
            by_ledger.setdefault(event.session, []).append(event)
        for ledger, some in by_ledger.items():
            self._ledger.append(ledger, some)

    # -- state

    def _save_state(self) -> None:
        sizes = {log.name: _sizes(log) for log in (self._home.journal, self._home.usage)}
        saved = {**asdict(self._state), "sizes": sizes}
        replace_file(self._home.state / STATE, json.dumps(saved).encode() + b"\n")

    def _cut_back(self) -> None:
        """Remove an interrupted batch from the logs."""
        known = _read_state(self._home.root).get("sizes", {})
        for log in (self._home.journal, self._home.usage):
            for name in _sizes(log):
                size = known.get(log.name, {}).get(name, 0)
                if size:
                    os.truncate(log / name, size)
                else:
                    (log / name).unlink()
        for name in self._ledger.sizes():
            torn = torn_tail(self._home.ledger / name)
            if torn is not None:
                os.truncate(self._home.ledger / name, torn)


def _sizes(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted(folder.glob("*.jsonl"))}


def _read_state(root: Path) -> dict[str, Any]:
    try:
        found = json.loads(read_bytes(root / "state" / STATE))
    except UNREADABLE:
        return {}
    return found if isinstance(found, dict) else {}


def _state_of(root: Path) -> MigrationState | None:
    saved = _read_state(root)
    return MigrationState(saved["source"], saved["uses"], saved["journal"], saved["finished"]) if saved else None


class VectorCache:
    """An embedder that returns the migrated vectors, and asks another embedder for the rest."""

    def __init__(self, path: Path, embedder: "Embedder | None") -> None:
        self._embedder = embedder
        self._connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(
            "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; "
            "CREATE TABLE IF NOT EXISTS vectors (meaning BLOB PRIMARY KEY, vector BLOB NOT NULL) WITHOUT ROWID"
        )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, migrated: "Iterable[tuple[bytes, Vectors]]") -> None:
        """Store vectors by the digests of their texts."""
        rows = [(meaning, to_blob(vector)) for meaning, vector in migrated]
        if rows:
            self._connection.execute("BEGIN")
            self._connection.executemany("INSERT OR REPLACE INTO vectors (meaning, vector) VALUES (?, ?)", rows)
            self._connection.execute("COMMIT")

    @property
    def name(self) -> str:
        """The embedder's name."""
        return self._fallback.name

    @property
    def dim(self) -> int:
        """The embedder's number of dimensions."""
        return self._fallback.dim

    def embed(self, texts: Sequence[str]) -> "Vectors":
        """Vectors of texts: the migrated ones, and new ones for the rest."""
        import numpy as np

        migrated = [self._find(text) for text in texts]
        missing = [text for text, vector in zip(texts, migrated, strict=True) if vector is None]
        made = iter(self._fallback.embed(missing)) if missing else iter(())
        rows = [vector if vector is not None else next(made) for vector in migrated]
        return np.stack(rows) if rows else np.empty((0, self.dim), dtype=np.float32)

    def _find(self, text: str) -> "Vectors | None":
        digest = (meaning_digest(text),)
        row = self._connection.execute("SELECT vector FROM vectors WHERE meaning = ?", digest).fetchone()
        return from_blob(row[0]) if row else None

    @property
    def _fallback(self) -> "Embedder":
        if self._embedder is None:
            raise EmbedderError("this process has no embedder")
        return self._embedder
