"""The files backend: one object over home, journal, usage, ledger and index."""

import contextlib
import json
import os
import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.model.errors import EmbedderError, InvalidInput, StoreBusy, StoreError, StoreReadOnly
from engram.model.event import Event, Session
from engram.model.memory import Memory
from engram.model.usage import Use
from engram.store.documents import matches_metadata
from engram.store.files import (
    events,
    examining,
    filling,
    following,
    images,
    pausing,
    purging,
    recovery,
    sessions,
    uses,
    verdicts,
    verifying,
    walking,
)
from engram.store.files.healing import explained, healing, is_damage
from engram.store.files.home import Home
from engram.store.files.index.index import Index
from engram.store.files.journal import Journal
from engram.store.files.ledger import Ledger
from engram.store.files.lock import DEFAULT_DEADLINE, WriterLock
from engram.store.files.memories import Stamp, stamp_of
from engram.store.files.parts import Parts
from engram.store.files.task_keeping import TaskKeeping
from engram.store.files.transaction import FilesTransaction
from engram.store.files.usage import Usage
from engram.store.ledgers import decode_event
from engram.store.lineages import heads_among, versions_among
from engram.store.protocol import (
    Candidates,
    Check,
    Filters,
    Following,
    Found,
    Image,
    NewEvent,
    Noticed,
    Placed,
    Progress,
    Pruned,
    Purged,
    Query,
    Stand,
    Step,
    Stretch,
    no_jobs,
)
from engram.store.records import decode_record
from engram.store.scope_of import trusted_of
from engram.store.sources import random_hex, utc_now
from engram.store.walks import PLAIN, Hops

if TYPE_CHECKING:
    from engram.embedding.protocol import Embedder, Vectors

NOTICE_EVERY = 0.25
"""Seconds between two looks at the folders' times."""
LEDGERS_EVERY = 2.0
"""Seconds between two looks at the sizes of all ledgers."""
PATIENCE = 2.0
"""How long a reader waits for the lock to journal a hand edit it saw; after that it answers from the file."""
LOOKED_AT = 200
"""Up to so many listed memories have their files looked at for edits; `engram sync` looks at all."""


class FilesStore(TaskKeeping):
    """Implements `protocol.Store` on plain files."""

    def __init__(
        self,
        home: Home,
        embedder: "Embedder | None" = None,
        *,
        clock: Callable[[], datetime] = utc_now,
        token: Callable[[int], str] = random_hex,
        deadline: float = DEFAULT_DEADLINE,
    ) -> None:
        super().__init__()
        self._deadline = deadline
        self._noticed_at = self._ledgers_at = float("-inf")
        self.parts = Parts(
            home=home,
            journal=Journal(home.journal, home.quarantine),
            usage=Usage(home.usage),
            ledger=Ledger(home.ledger, home.quarantine),
            index=Index(home.index, embedder.name if embedder else "", embedder.dim if embedder else 0),
            lock=WriterLock(home.lock),
            embedder=embedder,
            clock=clock,
            token=token,
        )
        self._settle()

    def _settle(self) -> None:
        """Fill a new index; finish what a crash left; on a read-only home only read, and say so."""
        try:
            if self.parts.index.fresh:
                self._fill()
            else:
                self._look_up()
        except StoreReadOnly as error:
            self.parts.warnings.append(str(error))
            if self.parts.index.fresh:
                self._fill_unlocked()

    @healing
    def _fill(self) -> None:
        with self.parts.lock.held(self._deadline):
            # Another process may have filled it while this one waited.
            if self.parts.index.get("filled") is None:
                self.rebuild()
            self.parts.index.fresh = False
            self._ready_to_write()

    @healing
    def _look_up(self) -> None:
        self._catch_up_if_free()
        self._fill_vectors()

    def _fill_unlocked(self) -> None:
        """Where the home cannot be written nobody needs to be kept out."""
        try:
            from engram.store.files.rebuilding import rebuild

            self.parts.warnings += rebuild(self.parts).problems
        except StoreReadOnly as error:
            self._warn(f"files changed by hand were not taken in: {error}")
        self.parts.index.fresh = False

    def follow_replacement(self) -> None:
        """Use the index that lies at its place, should another process have put a new one there."""
        if self.parts.index.reopen_if_replaced() and self.parts.index.fresh:
            self._settle()

    def mend(self, error: sqlite3.DatabaseError | OSError) -> None:
        """Make a damaged index anew; a full disk or a busy neighbour is told to the caller instead."""
        if not is_damage(error, self.parts.home.index) and not self.parts.index.reopen_if_replaced():
            raise explained(error) from error
        try:
            self.heal()
        except (sqlite3.DatabaseError, OSError) as again:
            raise explained(again) from again

    def _catch_up_if_free(self) -> None:
        parts = self.parts
        if not parts.journal.grew_since(parts.position) and not self._ledgers_grew() and not purging.unfinished(parts):
            return
        with contextlib.suppress(StoreBusy), parts.lock.held(0.05):
            self._finish()
        self._fill_vectors()

    def _finish(self, ledger: str | None = None) -> None:
        """What a crash left undone; for the holder of the writer lock."""
        recovery.catch_up(self.parts, ledger=ledger)
        if purging.unfinished(self.parts):
            purging.resume(self.parts)

    def _ledgers_grew(self) -> bool:
        """Whether events wait to be indexed, which only a crash or another version's index leaves; looked at now and then."""
        now = time.monotonic()
        if now - self._ledgers_at < LEDGERS_EVERY:
            return False
        self._ledgers_at = now
        known = dict(self.parts.index.db.execute("SELECT name, size FROM ledgers").fetchall())
        return self.parts.ledger.sizes() != known

    def heal(self) -> None:
        """Begin a new index where the old one is damaged."""
        if not self.parts.index.reopen_if_replaced():
            with self.parts.lock.held(self._deadline):
                self.parts.index.discard()
        if self.parts.index.fresh:
            self.rebuild()

    def rebuild(self, progress: Progress = lambda *_: None) -> Noticed:
        """Make the index anew."""
        with self.guard, self.parts.lock.held(self._deadline):
            from engram.store.files.rebuilding import rebuild

            noticed = rebuild(self.parts, progress)
            self.parts.index.fresh = False
        self.parts.warnings += noticed.problems
        return noticed

    @property
    def place(self) -> str:
        """The store's directory."""
        return str(self.parts.home.root)

    def close(self) -> None:
        """Close the index."""
        self.parts.index.close()

    # -- reads

    @healing
    def get(self, ref: str) -> Memory | None:
        """A memory by id, name or alias."""
        row = self._row(ref)
        if row is None and self._notice(force=True):
            row = self._row(ref)
        if row is None:
            return None
        found = self._fresh_records([row[0]])
        return found[0].record if found and isinstance(found[0].record, Memory) else None

    def _row(self, ref: str) -> tuple[int, str] | None:
        row = self.parts.index.one("by_ref", ref)
        if row is not None:
            return row[0], row[1]
        rows = self.parts.index.all("by_name", ref)
        live = [r for r in rows if r[2] in ("active", "dormant", "candidate")] or rows
        if len(live) > 1:
            raise InvalidInput(f"{ref!r} names {len(live)} memories: {', '.join(r[1] for r in live)}; use the id")
        return (live[0][0], live[0][1]) if live else None

    @healing
    def get_many(self, numbers: Sequence[int]) -> list[Found]:
        """Records by document number; those whose file changed are read anew."""
        return self._fresh_records(numbers)

    def _fresh_records(self, numbers: Sequence[int]) -> list[Found]:
        self._pick_up_changed(numbers)
        rows = self.parts.index.records(numbers)
        return [self._found(n, *rows[n]) for n in numbers if n in rows]

    def _found(self, n: int, kind: str, record: str) -> Found:
        return Found(n, kind, decode_record(record) if kind == "memory" else decode_event(record))

    def _pick_up_changed(self, numbers: Sequence[int]) -> None:
        stamps = self.parts.index.all("stamps", json.dumps(list(numbers)))
        changed = [path for _, _, path, *stamp in stamps if stamp_of(self.parts.path(path)) != Stamp(*stamp)]
        if changed:
            self._under_lock(lambda: following.pick_up(self.parts, changed))

    def _under_lock(self, work: Callable[[], Noticed]) -> Noticed | None:
        """Do small upkeep on the way of a read; a reader that cannot write answers from what it has, and says so."""
        try:
            with self.parts.lock.held(PATIENCE):
                noticed = work()
            self._fill_vectors()
        except (StoreReadOnly, StoreBusy) as error:
            self._warn(f"changed files were not taken in: {error}")
            return None
        for problem in noticed.problems:
            self._warn(problem)
        return noticed

    def _warn(self, text: str) -> None:
        if text not in self.parts.warnings:
            self.parts.warnings.append(text)

    def _notice(self, *, force: bool = False) -> bool:
        """Look at the folders' times; take in files that came or went. Says whether anything did."""
        self._catch_up_if_free()
        now = time.monotonic()
        if not force and now - self._noticed_at < NOTICE_EVERY:
            return False
        self._noticed_at = now
        changed = following.changed_folders(self.parts, following.roots(self.parts))
        if not changed:
            return False
        noticed = self._under_lock(lambda: self._list(changed))
        return bool(noticed)

    def _list(self, folders: Iterable[Path]) -> Noticed:
        noticed = Noticed()
        for folder in folders:
            following.list_folder(self.parts, folder, noticed)
        return noticed

    @healing
    def exact(self, content_hash: str, scope: str) -> Memory | None:
        """The live memory with this content in this scope."""
        row = self.parts.index.one("exact", content_hash, scope) if content_hash else None
        return decode_record(row[1]) if row else None

    @healing
    def owned(self, memory_ids: Iterable[str]) -> list[str]:
        """Those of the memories that live in the owner's own store."""
        return [i for i in memory_ids if not following.is_team(following.place_of(self.parts, i))]

    def trusted_here(self, directory: Path) -> frozenset[str]:
        """Digests of what the owner trusts of a directory's repository."""
        return trusted_of(self.parts.home.state, directory)

    @healing
    def named(self, name: str, scope: str) -> str:
        """The id of the memory that goes by this name in a scope, or ""."""
        row = self.parts.index.db.execute("SELECT id FROM names WHERE name = ? AND scope = ?", (name, scope)).fetchone()
        return row[0] if row else ""

    @healing
    def mark(self, scope: str) -> int:
        """The number of the last change; all scopes share one count."""
        return self.parts.index.change

    @healing
    def file_of(self, memory_id: str) -> str:
        """The file that holds a memory, or ""."""
        place = following.place_of(self.parts, memory_id)
        return str(self.parts.path(place)) if place else ""

    @healing
    def event(self, event_id: str) -> Event | None:
        """An event by id."""
        return events.find(self.parts, event_id)

    @healing
    def listing(self, filters: Filters, limit: int | None = None, offset: int = 0) -> list[Memory]:
        """Memories, newest first."""
        self._notice()
        if filters.metadata:
            found = (decode_record(record) for record in self.parts.index.listed(filters, None, 0))
            kept = [memory for memory in found if matches_metadata(memory.metadata, filters.metadata)]
            return kept[offset:] if limit is None else kept[offset : offset + limit]
        listed = self.parts.index.listed(filters, limit, offset)
        if len(listed) > LOOKED_AT:
            return [decode_record(record) for record in listed]
        numbers = self.numbers([json.loads(record)["id"] for record in listed])
        return [f.record for f in self._fresh_records(list(numbers.values())) if isinstance(f.record, Memory)]

    @healing
    def count(self, filters: Filters) -> int:
        """How many documents pass the filters."""
        return self.parts.index.counted(filters)

    @healing
    def candidates(self, query: Query, filters: Filters) -> Candidates:
        """What each retriever finds."""
        self._notice()
        found = self.parts.index.candidates(query, filters)
        if query.vector is None or not self.parts.index.can_embed():
            found.warnings += examining.foreign_vectors(self.parts)
        return found

    @healing
    def stands(self, numbers: Sequence[int]) -> dict[int, Stand]:
        """Where each document stands."""
        return {n: Stand(*place) for n, *place in self.parts.index.all("stands", json.dumps(list(numbers)))}

    @healing
    def passages(self, numbers: Sequence[int], stretches: Sequence[Stretch], filters: Filters) -> list[Placed]:
        """These documents, then every document of these stretches."""
        return self.parts.index.passages(numbers, stretches, filters)

    @healing
    def frequencies(self, terms: Sequence[str]) -> Mapping[str, int]:
        """In how many documents each term occurs."""
        return self.parts.index.frequencies(terms)

    @healing
    def numbers(self, memory_ids: Sequence[str]) -> dict[str, int]:
        """The document numbers of memories."""
        rows = self.parts.index.db.execute(
            "SELECT d.id, d.n FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value", (json.dumps(list(memory_ids)),)
        )
        return dict(rows.fetchall())

    @healing
    def heads(self, conflict_key: str, scope: str) -> list[Memory]:
        """The memories in force that hold a conflict key in a scope."""
        self._notice()
        ids = [i for (i,) in self.parts.index.all("heads", conflict_key, scope)]
        found = self._fresh_records(list(self.numbers(ids).values()))
        return heads_among((f.record for f in found if isinstance(f.record, Memory)), conflict_key, scope)

    @healing
    def lineage(self, lineage_id: str) -> list[Memory]:
        """Every version of a fact, by revision."""
        self._notice()
        return versions_among((decode_record(r) for (r,) in self.parts.index.all("lineage", lineage_id)), lineage_id)

    @healing
    def known_at(self, moment: datetime) -> dict[str, Memory | None]:
        """What Engram held then of every memory it has decided about since."""
        return images.known_at(self.parts, moment)

    @healing
    def vectors(self, numbers: Sequence[int]) -> "Vectors | None":
        """Vectors of documents."""
        return self.parts.index.vectors(numbers)

    def embed(self, texts: Sequence[str]) -> "Vectors | None":
        """Vectors of texts in the store's space, or None."""
        return self.parts.embedder.embed(texts) if self.parts.embedder and self._can_embed() else None

    @healing
    def _can_embed(self) -> bool:
        return self.parts.index.can_embed()

    @healing
    def history(self, memory_id: str) -> list[Image]:
        """Everything that was decided about a memory."""
        return images.history(self.parts, memory_id)

    @healing
    def links_to(self, memory_ids: Iterable[str]) -> list[tuple[str, str, str, float]]:
        """Links that point at these memories."""
        return self.parts.index.all("links_to", json.dumps(list(memory_ids)))

    @healing
    def walk(
        self,
        seeds: Sequence[str],
        *,
        depth: int,
        direction: str,
        types: tuple[str, ...] | None,
        min_weight: float,
        per_seed: int,
        filters: Filters = PLAIN,
    ) -> list[Step]:
        """What is linked to these memories."""
        self._notice()
        hops = Hops(direction, types, min_weight, filters)
        return walking.walk(self.parts.index.db, seeds, depth, hops, per_seed)

    @healing
    def sync(self, *, seconds: float | None = None) -> Noticed:
        """Bring the index in step with all files, or with as many as the time allows."""
        with self.parts.lock.held(self._deadline):
            self._finish()
            noticed = following.sync(self.parts, seconds=seconds)
        self._fill_vectors()
        return noticed

    def reading(self) -> contextlib.AbstractContextManager[None]:
        """The index is at hand: there is nothing to spare."""
        return contextlib.nullcontext()

    # -- decisions

    @contextlib.contextmanager
    def deciding(
        self,
        op: str,
        *,
        actor: str,
        reason: str = "",
        session: str = "",
        scopes: Sequence[str] = (),
        about: Iterable[str] = (),
    ) -> Iterator[FilesTransaction]:
        """One decision, alone with the store: there is one lock, whatever scopes and memories it is about."""
        process = os.getpid()
        with self.guard:
            with self.parts.lock.held(self._deadline):
                self._ready_to_write()
                transaction = FilesTransaction(self.parts, op, actor, reason, session)
                try:
                    yield transaction
                    if os.getpid() != process:
                        raise StoreError(
                            "a forked child cannot commit its parent's decision; open the store anew there"
                        )
                    transaction.commit()
                except (sqlite3.DatabaseError, OSError) as error:
                    self._mend_midway(error, transaction)
            self._fill_vectors()

    def _mend_midway(self, error: sqlite3.DatabaseError | OSError, transaction: FilesTransaction) -> None:
        self.mend(error)
        if not transaction.journaled:
            raise StoreError(f"the index was damaged ({error}) and has been made anew; nothing was written, try again")

    def _ready_to_write(self) -> None:
        try:
            self.follow_replacement()
            self._finish(ledger="")
        except (sqlite3.DatabaseError, OSError) as error:
            self.mend(error)
            self._finish()

    def _fill_vectors(self) -> None:
        """Embed what was indexed without a vector (hand edits, replays), outside any transaction."""
        try:
            filling.fill_vectors(self.parts, self._deadline)
        except EmbedderError as error:
            self._warn(f"some documents are found by keyword only for now: {error}")

    # -- usage

    def note_use(self, use: Use) -> None:
        """Append a use; no lock, no wait."""
        self.parts.usage.append(use)

    @healing
    def uses_of(self, memory_ids: Iterable[str]) -> list[Use]:
        """Every noted use of these memories, oldest first."""
        return uses.of(self.parts, memory_ids)

    @healing
    def uses_in(self, session: str) -> list[Use]:
        """Every use noted in a session."""
        return uses.in_session(self.parts, session)

    @healing
    def used_since(self, position: int) -> list[str]:
        """Ids of memories used after a position."""
        return uses.since(self.parts, position)

    @healing
    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""
        return uses.last(self.parts, kind)

    # -- events and sessions

    def append_events(self, session: str, new: Sequence[NewEvent], jobs: Following = no_jobs) -> list[Event]:
        """Append to a ledger."""
        try:
            return self._append_events(session, new, jobs)
        except events.NotIndexed as late:
            with self.guard:
                self.mend(late.error)
            return late.events

    @healing
    def _append_events(self, session: str, new: Sequence[NewEvent], jobs: Following) -> list[Event]:
        return events.append(self.parts, session, new, jobs)

    @healing
    def events(self, session: str, *, last: int | None = None, after: int = 0) -> list[Event]:
        """A ledger's events in order."""
        return events.of_ledger(self.parts, session, last, after)

    def save_session(self, session: Session) -> None:
        """Create or update a session."""
        sessions.save_session(self.parts.home, session)

    def session(self, session_id: str) -> Session | None:
        """A session by id."""
        return sessions.load_session(self.parts.home, session_id)

    def sessions(self, limit: int | None = None) -> list[Session]:
        """Every session, newest first."""
        return sessions.all_sessions(self.parts.home)[:limit]

    # -- upkeep

    @property
    def warnings(self) -> list[str]:
        """What the owner should hear of."""
        return self.parts.warnings

    def new_token(self, size: int) -> str:
        """Random hex digits."""
        return self.parts.token(size)

    @property
    def paused(self) -> bool:
        """Whether the owner has paused learning and injection."""
        return pausing.is_paused(self.parts.home)

    def pause(self, paused: bool) -> None:
        """Begin or end a pause."""
        pausing.pause(self.parts.home, paused)

    @healing
    def sync_team(self, folder: Path, *, again: bool = False) -> Noticed:
        """Take in what a team store holds; `again` reads files anew because their trust changed."""
        with self.parts.lock.held(self._deadline):
            if again:
                with self.parts.index.writing():
                    following.forget_stamps(self.parts, folder)
            noticed = following.sync_folder(self.parts, folder)
        self._fill_vectors()
        return noticed

    @healing
    def reembed(self, progress: Progress = lambda *_: None) -> int:
        """Make all vectors anew with this process's embedder, beside the old ones until complete."""
        from engram.store.files.reembedding import reembed

        return reembed(self.parts, self._deadline, progress)

    def build_nearest(self, progress: Progress = lambda *_: None) -> str:
        """Files are searched exactly, in milliseconds."""
        raise InvalidInput(
            "a store of files compares every vector, exactly and in milliseconds; --nearest is for Postgres"
        )

    @healing
    def purge(self, ids: Sequence[str], *, actor: str) -> Purged:
        """Destroy memories and events, and prove it."""
        with self.parts.lock.held(self._deadline):
            self._finish()
            return purging.purge(self.parts, ids, actor)

    @healing
    def prune(self, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
        """Let go of history older than so many days, or say what would go."""
        from engram.store.files import pruning

        with self.parts.lock.held(self._deadline):
            self._finish()
            return (pruning.plan if dry_run else pruning.prune)(self.parts, now, journal, usage, ledger)

    def backup(self, target: Path, now: datetime) -> dict[str, int]:
        """Write everything the store holds to one archive."""
        from engram.store.files.backup import backup

        return backup(self.parts.home, target, now)

    def note_verdict(self, gate: str, outcome: str, at: datetime) -> None:
        """Count what the gates said of an autonomous proposal."""
        verdicts.note(self.parts.home, gate, outcome, at)

    def verdicts(self, since: datetime) -> list[tuple[str, str]]:
        """Gate and outcome of the proposals since then."""
        return verdicts.read(self.parts.home, since)

    @healing
    def verify_ledgers(self) -> list[str]:
        """What is wrong with the ledgers' chains, and with their ends as the journal has them."""
        return verifying.verify(self.parts)

    @healing
    def facts(self) -> Mapping[str, Any]:
        """What `status` and `doctor` say of the store."""
        return examining.facts(self.parts)

    def examine(self) -> list[Check]:
        """What the files, the index and the embedder are like; changes made by hand are taken in first."""
        noticed = self.sync()
        return examining.checks(self.facts(), noticed.problems)
