"""A directory as the target of a move: filled beside its place, and put there when it is whole.

Until then it is no store that anyone could open half-filled. Logs are cut back to what the last whole slice left; everything
else is written so that writing it again changes nothing.
"""

import contextlib
import json
import os
import shutil
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EmbedderError, Refused, StoreReadOnly
from engram.model.event import Event
from engram.model.memory import Memory
from engram.model.usage import Use
from engram.store.files import journal, memories, pausing, sessions, tasks, verdicts
from engram.store.files.carrying import CarriedVectors
from engram.store.files.confinement import UNREADABLE, read_bytes
from engram.store.files.home import Home, open_home
from engram.store.files.index.index import Index
from engram.store.files.journal import Journal, append_durably, replace_file, torn_tail
from engram.store.files.ledger import Ledger
from engram.store.files.lock import WriterLock
from engram.store.files.memories import stamp_of
from engram.store.files.parts import Parts
from engram.store.files.placing import check_empty, put_in_place
from engram.store.files.usage import Usage
from engram.store.moving import Carried, Decision, Small, Way
from engram.store.protocol import Progress
from engram.store.records import from_image

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder

STATE, VECTORS = "moving.json", "moved-vectors.db"


class FilesTarget:
    """Fills a directory. `close` lets go of it, whether it is whole or not."""

    def __init__(self, root: Path, cache: Path | None, embedder: "Embedder | None") -> None:
        self._root, self._cache, self._embedder = root.expanduser().absolute(), cache, embedder
        self._staging = self._root.with_name(f".{self._root.name}.moving")
        self._open = contextlib.ExitStack()
        self._way = Way("")
        self._seq = 0
        self.notes: list[str] = []
        self._places: dict[str, str] = {}

    def close(self) -> None:
        """Let go of it."""
        self._open.close()

    @property
    def place(self) -> str:
        """The directory."""
        return str(self._root)

    @property
    def embedder(self) -> str:
        """Whose vectors its index takes."""
        return self._embedder.name if self._embedder is not None else ""

    @property
    def home(self) -> Home:
        """The store, once it is in its place."""
        return open_home(self._root, self._cache, create=False)

    # -- beginning and ending

    def begin(self, source: str) -> Way:
        """Begin beside the place, or go on there; a place that holds anything is refused."""
        placed, begun = self.check(source)
        if placed is not None:
            self._way = placed
            if not placed.finished:
                self.finish(lambda *_: None)
            return self._way
        if begun is None:
            self._clear()
        self._enter(begun or Way(source))
        return self._way

    def check(self, source: str) -> tuple[Way | None, Way | None]:
        """How far this move came in its place, and beside it; refuses what holds anything else."""
        placed, begun = _state_of(self._root), _state_of(self._staging)
        for known, where in ((placed, self._root), (begun, self._staging)):
            if known is not None:
                self._refuse_other(known, source, where)
        if placed is None:
            check_empty(self._root)
        return placed, begun

    def _refuse_other(self, known: Way, source: str, where: Path) -> None:
        if known.source != source:
            raise Refused(
                f"{where} was begun from another store ({known.source}); give another directory, or remove it"
            )

    def _clear(self) -> None:
        """What a move left that was ended before it remembered anything."""
        if self._staging.exists():
            shutil.rmtree(self._staging)

    def _enter(self, way: Way) -> None:
        try:
            self._root.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreReadOnly(f"cannot make {self._root.parent}: {error.strerror}") from error
        self._home = open_home(self._staging, self._cache)
        self._open.enter_context(WriterLock(self._home.lock).held(1.0))
        self._journal = Journal(self._home.journal, self._home.quarantine)
        self._usage = Usage(self._home.usage)
        self._ledger = Ledger(self._home.ledger, self._home.quarantine)
        self._vectors = CarriedVectors(self._home.state / VECTORS, self._embedder)
        self._open.callback(lambda: self._vectors.close())
        self._way = way
        self._cut_back()
        for placed in self._journal.read():
            self._seq = placed.entry.seq
            self._places |= {change.id: change.file for change in placed.entry.changes if change.file}
        self._remember()

    def finish(self, progress: Progress) -> None:
        """Put the store in its place and make its index."""
        if _state_of(self._root) is None:
            os.sync()
            self.close()
            put_in_place(self._staging, self._root)
        home = self.home
        self._make_index(home, progress)
        self._way.finished = True
        replace_file(home.state / STATE, json.dumps(asdict(self._way)).encode() + b"\n")
        (home.state / VECTORS).unlink(missing_ok=True)

    def _make_index(self, home: Home, progress: Progress) -> None:
        from engram.store.files.rebuilding import rebuild

        vectors = CarriedVectors(home.state / VECTORS, self._embedder)
        maker = vectors if self._embedder is not None else None
        parts = Parts(
            home=home,
            journal=Journal(home.journal, home.quarantine),
            usage=Usage(home.usage),
            ledger=Ledger(home.ledger, home.quarantine),
            index=Index(home.index, self.embedder, self._embedder.dim if self._embedder else 0),
            lock=WriterLock(home.lock),
            embedder=maker,
        )
        try:
            with parts.lock.held():
                self.notes += rebuild(parts, progress).problems
        except EmbedderError as error:
            self.notes.append(f"the index is made when the store is first opened: {error}")
        finally:
            parts.index.close()
            vectors.close()

    # -- what has arrived

    def heads(self) -> Mapping[str, int]:
        """The number of each session's last event."""
        return {event.session: event.seq for name in self._ledger.sizes() for event in self._ledger.read(name)}

    def positions(self) -> "array[int]":
        """The positions of all uses."""
        return array("q", (use.position for use in self._usage.read()))

    # -- taking in

    def take_small(self, small: Small) -> None:
        """Sessions, tasks, verdicts, the pause. Tombstones and numbers are in the journal."""
        for session in small.sessions:
            sessions.save_session(self._home, session)
        tasks.replace_all(self._home, small.tasks, small.checkpoints, small.jobs)
        lines = [
            json.dumps({"at": v.at.astimezone(UTC).isoformat(), "gate": v.gate, "outcome": v.outcome})
            for v in small.verdicts
        ]
        if lines:
            replace_file(self._home.state / verdicts.FILE, "".join(f"{line}\n" for line in lines).encode())
        pausing.pause(self._home, small.paused)

    def take_uses(self, uses: Sequence[Use]) -> None:
        """Append uses; each one's place in the file is its position."""
        for use in uses:
            self._usage.append(use)
        self._way.uses = uses[-1].position
        self._remember()

    def made_ready(self, decisions: Sequence[Decision], vectors: Carried) -> tuple[Sequence[Decision], Carried]:
        """Nothing is slow here but the writing."""
        return decisions, vectors

    def take_decisions(self, ready: tuple[Sequence[Decision], Carried]) -> None:
        """Journal first, then the files of the memories that stand so now."""
        decisions, vectors = ready
        self._vectors.keep(vectors.values())
        month = (self._journal.months() or [""])[-1]
        lines: dict[str, list[bytes]] = {}
        for decision in decisions:
            month = max(month, decision.at.astimezone(UTC).strftime("%Y-%m"))
            lines.setdefault(month, []).append(journal.encode(self._entry(decision)))
        for month, encoded in lines.items():
            append_durably(self._journal.path(month), b"".join(encoded))
        for decision in decisions:
            for change in decision.changes:
                if change.current and change.after is not None:
                    self._write(change.id, change.after)
        self._way.journal = decisions[-1].cursor
        self._remember()

    def _entry(self, decision: Decision) -> journal.Entry:
        self._seq += 1
        changes = tuple(
            journal.Change(change.id, change.after, change.team or self._place(change.id, change.after))
            for change in decision.changes
        )
        return journal.Entry(
            self._seq, decision.at, decision.op, decision.actor, decision.reason, changes, decision.session, decision.extra
        )  # fmt: skip

    def _place(self, memory_id: str, after: Mapping[str, Any] | None) -> str:
        """Where a memory's file lies: where its first image put it."""
        if after is None:
            return ""
        if memory_id not in self._places:
            scope = str(after.get("scope") or "global")
            named = memories.relative_path(Memory(id=memory_id, statement="", scope=scope))
            self._places[memory_id] = f"engrams/{named}"
        return self._places[memory_id]

    def _write(self, memory_id: str, after: Mapping[str, Any]) -> None:
        path = self._home.root / self._place(memory_id, after)
        memories.write(path, from_image(after), stamp_of(path), after)

    def take_events(self, events: Sequence[Event], vectors: Carried) -> None:
        """Append events to their ledgers."""
        self._vectors.keep(vectors.values())
        by_session: dict[str, list[Event]] = {}
        for event in events:
            by_session.setdefault(event.session, []).append(event)
        for session, said in by_session.items():
            self._ledger.append(session, said)

    # -- remembering

    def _remember(self) -> None:
        sizes = {log.name: _sizes(log) for log in (self._home.journal, self._home.usage)}
        state = {**asdict(self._way), "sizes": sizes}
        replace_file(self._home.state / STATE, json.dumps(state).encode() + b"\n")

    def _cut_back(self) -> None:
        """Take away what a slice that was not ended has left in the logs."""
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


def _state_of(root: Path) -> Way | None:
    state = _read_state(root)
    if not state:
        return None
    return Way(state["source"], state["uses"], state["journal"], state["finished"])
