"""A store of files as the source of a move: read straight from its files, which stay as they are to the byte."""

import contextlib
import json
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from engram.model.errors import EngramError, StoreCorrupt, StoreError
from engram.model.event import Event
from engram.model.usage import Use
from engram.store.comparing import chain_of
from engram.store.files import pausing, sessions, tasks, verdicts
from engram.store.files.confinement import MALFORMED, read_bytes
from engram.store.files.following import is_team
from engram.store.files.home import Home
from engram.store.files.journal import Journal, Placed, Position
from engram.store.files.ledger import Ledger
from engram.store.files.lock import WriterLock
from engram.store.files.peeking import Peek
from engram.store.files.purge_plan import unfinished
from engram.store.files.standing import Standing, compare_files, last_of_each, purged_ids
from engram.store.files.usage import Usage
from engram.store.moving import Carried, Chain, Change, Counts, Decision, Small, Verdict, slices

LOCK_SECONDS = 10.0
"""How long to wait for a decision that is just being written."""
EXAMPLES = 3


class FilesSource:
    """Reads a home, as far as `settle` found it to go."""

    def __init__(self, home: Home) -> None:
        self.home = home
        self.notes: list[str] = []
        self._journal, self._usage = Journal(home.journal, home.quarantine), Usage(home.usage)
        self._ledger = Ledger(home.ledger, home.quarantine)
        self._peek = Peek(home)
        self._standing = Standing()
        self._purged: frozenset[str] = frozenset()
        self._bound, self._used = Position(), 0
        self._small = Small((), (), frozenset(), {}, False)
        self._heads: dict[str, int] = {}
        self._events = 0

    def close(self) -> None:
        """Let go of the index."""
        self._peek.close()

    @property
    def identity(self) -> str:
        """The store's own id, and where it lies."""
        return f"files {self.home.store_id} {self.home.root}"

    @property
    def place(self) -> str:
        """The store's directory."""
        return str(self.home.root)

    @property
    def embedder(self) -> str:
        """Who made the vectors of its index."""
        return self._peek.embedder

    # -- how far it goes

    def settle(self) -> None:
        """A decision that fails is taken back under the writer lock; behind it, what the journal holds stays."""
        with self._undisturbed():
            self._bound, self._used = self._journal.end(), self._usage.end()
        self._purged = purged_ids(self._journal)
        self._standing.positions = array("q", (use.position for use in self._all_uses(0)))
        self._standing.read(self._journal, self._bound)
        events = [(event.session, event.seq) for name in self._ledger.sizes() for event in self._ledger.read(name)]
        self._heads, self._events = dict(events), len(events)
        problems: list[str] = []
        runs = list(tasks.all_tasks(self.home, problems))
        if problems:
            raise StoreCorrupt(problems[0])
        self._small = Small(
            sessions=sessions.all_sessions(self.home),
            verdicts=list(_verdicts(self.home)),
            tombstones=self._purged,
            numbers=self._standing.numbers(),
            paused=pausing.is_paused(self.home),
            tasks=runs,
            checkpoints=[point for task in runs for point in tasks.checkpoints(self.home, task.id)],
            jobs=tasks.all_jobs(self.home),
        )

    @contextlib.contextmanager
    def _undisturbed(self) -> Iterator[None]:
        with contextlib.ExitStack() as held:
            if self.home.lock.exists():
                with contextlib.suppress(EngramError):
                    held.enter_context(WriterLock(self.home.lock).held(LOCK_SECONDS))
            yield

    def check(self) -> None:
        """Refuse a store with changes by hand that it has not taken in: they would be lost."""
        if unfinished(self.home):
            raise StoreError(f"a purge of {self.place} was interrupted; `engram sync --home {self.place}` ends it")
        compared = compare_files(self.home, self._standing, self._peek.stamps(self._bound))
        self.notes += [f"not moved: {fault}" for fault in compared.faulty]
        if compared.pending:
            shown = "; ".join(compared.pending[:EXAMPLES])
            more = f" (and {len(compared.pending) - EXAMPLES} more)" if len(compared.pending) > EXAMPLES else ""
            raise StoreError(
                f"{self.place} holds changes made by hand that it has not taken in yet: {shown}{more}. Run "
                f"`engram sync --home {self.place}` first; moving changes nothing there"
            )

    def faults(self) -> list[str]:
        """Files that do not say what the journal says; every one is read, whatever the index knows of it."""
        compared = compare_files(self.home, self._standing, {})
        return compared.pending + compared.faulty

    def mark(self) -> tuple[Any, ...]:
        """Where the logs end, and how the small files look."""
        states = [path for kind in ("sessions", "jobs") for path in sorted((self.home.state / kind).glob("*.json"))]
        states += sorted(self.home.tasks.glob("*.json*"))
        return (
            self._journal.end(),
            self._usage.end(),
            sorted(self._ledger.sizes().items()),
            [(path.name, path.stat().st_mtime_ns) for path in states],
        )

    # -- what it holds

    def counts(self) -> Counts:
        """How much there is."""
        small = self._small
        return Counts(
            memories=sum(1 for _ in self._standing.own()),
            decisions=len(self._standing.audit),
            images=self._standing.images,
            uses=len(self._standing.positions),
            events=self._events,
            sessions=len(small.sessions),
            verdicts=len(small.verdicts),
            tombstones=len(small.tombstones),
        )

    def positions(self) -> "array[int]":
        """The positions of all uses."""
        return self._standing.positions

    def uses(self, after: int = -1) -> Iterator[list[Use]]:
        """Uses behind a position, in order."""
        return slices((use, len(use.ids), 0) for use in self._all_uses(after + 1))

    def _all_uses(self, since: int) -> Iterator[Use]:
        for use in self._usage.read(since):
            if use.position >= self._used:
                return
            ids = tuple(i for i in dict.fromkeys(use.ids) if i not in self._purged)
            if ids:
                yield replace(use, ids=ids)

    def decisions(self, cursor: str = "") -> Iterator[list[Decision]]:
        """Decisions behind a cursor, in order."""
        return slices(self._decisions(cursor))

    def _decisions(self, cursor: str) -> Iterator[tuple[Decision, int, int]]:
        for placed in self._journal.read(self._resumed(cursor)):
            if placed.end > self._bound:
                return
            yield self._decision(placed), len(placed.entry.changes), placed.end.offset - placed.start.offset

    def _resumed(self, cursor: str) -> Position:
        if not cursor:
            return Position()
        month, start, end, seq = json.loads(cursor)
        if not self._journal.stands(Position(month, start), end, seq):
            raise StoreError(
                f"the journal of {self.place} was pruned or purged since this move began; begin anew with an empty target"
            )
        return Position(month, end)

    def _decision(self, placed: Placed) -> Decision:
        entry, held = placed.entry, self._standing.held
        changes = tuple(
            Change(
                id=change.id,
                after=change.after,
                current=held[change.id].start == placed.start and held[change.id].is_own,
                team=change.file if is_team(change.file) else "",
            )
            for change in last_of_each(entry)
        )
        cursor = json.dumps([placed.start.month, placed.start.offset, placed.end.offset, entry.seq])
        return Decision(
            entry.at, entry.op, entry.actor, entry.reason, entry.session, changes, cursor, entry.extra
        )  # fmt: skip

    def vectors(self, ids: Sequence[str]) -> Carried:
        """Vectors of the index."""
        return self._peek.vectors(ids)

    def heads(self) -> Mapping[str, int]:
        """The number of each session's last event."""
        return self._heads

    def events(self, known: Mapping[str, int]) -> Iterator[list[Event]]:
        """Events behind what is known of each session."""
        return slices(
            (event, 1, len(event.content))
            for name in sorted(self._ledger.sizes())
            for event in self._ledger.read(name)
            if event.seq > known.get(event.session, 0)
        )

    def small(self) -> Small:
        """What is so little that it travels whole."""
        return self._small

    # -- for comparing

    def records(self) -> Iterator[tuple[str, bytes]]:
        """Every own memory's fingerprint, by id."""
        return ((i, held.print) for i, held in self._standing.own())

    def histories(self) -> Iterator[tuple[str, bytes]]:
        """Every id's images, by id."""
        return ((i, held.history) for i, held in sorted(self._standing.held.items()))

    def audit(self) -> Iterator[bytes]:
        """A digest of each decision, in order."""
        return iter(self._standing.audit)

    def chains(self) -> Mapping[str, Chain]:
        """Every session's ledger."""
        found = {}
        for name in self._ledger.sizes():
            events = list(self._ledger.read(name))
            if events:
                found[events[0].session] = chain_of(events, events[0].session)
        return found


def _verdicts(home: Home) -> Iterator[Verdict]:
    try:
        lines = read_bytes(home.state / verdicts.FILE).decode("utf-8", "replace").splitlines()
    except OSError:
        return
    for line in lines:
        with contextlib.suppress(*MALFORMED):
            fields = json.loads(line)
            yield Verdict(datetime.fromisoformat(fields["at"]), str(fields["gate"]), str(fields["outcome"]))
