"""All that a store on a server is asked in its life, by way of the library: every statement of the `.sql` files is among it."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, timedelta

import numpy as np
import numpy.typing as npt
import pytest

from benchmarks.tenants import is_empty
from engram import AllTenantsWorker, Engram
from engram.graph.graph import walk
from engram.model.memory import Association, Memory
from engram.model.records import Checkpoint, Job, Session, TaskRun, Use, transition_task
from engram.store.defaults import Server as Place
from engram.store.defaults import utc_now
from engram.store.ledger import ledger_scope
from engram.store.migration.transfer import Endpoint, transfer
from engram.store.postgres import neighbours, rebuild, tenants
from engram.store.postgres.setup import open_store
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import Filters, Hops, PassageRange, Query
from engram.store.states import StoreSpend
from engram.text.content_hash import content_hash
from engram.text.tokens import query_terms
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep, said
from tests.postgres.statements import EVERYTHING, FILTERS

WORDS = "The otter of the harbour sleeps in the boathouse by the river"
MANY = 260
"""More than are looked at before a filter: with one that few pass, those are compared that do."""


class Bytes:
    """Another embedder: the same text has the same direction."""

    name, dim = "bytes", 8

    def embed(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        """One unit row for each text."""
        rows = [np.random.default_rng(sum(text.encode())).normal(0.5, 1, self.dim) for text in texts]
        return np.array([row / np.linalg.norm(row) for row in rows], dtype=np.float32).reshape(-1, self.dim)


def live(url: str, tenant: str, other: str) -> None:
    """A tenant's whole life: used, moved to another one, cleaned up, removed."""
    clock = Clock()
    use_as_a_library(url, tenant, clock)
    work_for_all(url, clock)
    store = open_store(url, tenant, static_embedder(), clock=clock)
    try:
        kept = write(store, clock)
        search(store)
        read(store, kept, clock)
        work(store, clock)
        destroy(store, kept, clock)
    finally:
        store.close()
    move(url, tenant, other)
    embed_again(url, tenant, clock)
    for name in (tenant, other):
        tenants.remove(url, name)
        assert is_empty(url, name)


def use_as_a_library(url: str, tenant: str, clock: Clock) -> None:
    """What an agent does in a day."""
    with Engram.open(url=url, tenant=tenant, clock=clock) as mem:
        mem.add_batch([{"statement": f"{WORDS}, the {number}th time", "scope": "user"} for number in range(MANY)])
        port = mem.add("The api listens on port 8080", tags=["net"], metadata={"k": [1, "ü"]})
        mem.learn("Run the linter before every commit because the gate is strict", autonomous=True)
        with mem.session("change the port of the api") as session:
            session.observe("user", "The port is taken", key="first")
            session.feedback(port.id, "positive")
        mem.recall("which port has the api")
        mem.update(port.id, rationale="it always did")
        mem.revise(port.id, statement="The api listens on port 9090")
        mem.traverse(port.id)
        task = mem.start_task("ship the api")
        mem.record_turn(task.id, "begin", "done")
        mem.process_memory_jobs()
        mem.record_turn(task.id, "go on", "done")
        mem.complete_task(task.id)
        mem.upkeep.pause()
        mem.upkeep.resume()
        mem.doctor()
        mem.rebuild_index()


def work_for_all(url: str, clock: Clock) -> None:
    """What follows on a day, done by a worker of all tenants."""
    with AllTenantsWorker.open(url, clock=clock) as worker:
        assert [len(turn.worked.done) for turn in worker.work()] == [1]


def write(store: PostgresStore, clock: Clock) -> Memory:
    """Decisions of every kind."""
    keep = Keep(store, clock)
    mark = store.mark("global")
    first = keep(WORDS, name="otter", lineage="LIN-1", conflict_key="sleep")
    linked = keep("The heron sleeps in the reeds", associations=(Association(first.id, "semantic", 0.5),))
    with store.deciding("update", actor="test", scopes=["global"], about=[first.id]) as deciding:
        deciding.exact(content_hash("The otter sleeps"), "global")
        keep_name = deciding.free_name("otter", "global")
        deciding.heads("sleep", "global")
        deciding.lineage("LIN-1")
        deciding.changed_since("global", mark - 1)
        deciding.put(first.replace(rationale="seen there", name=keep_name))
    with store.deciding("add", actor="test", ids_for=[clock(), clock()]) as deciding:
        deciding.put(linked.replace(id=deciding.new_id(clock()), name="", statement="The coot sleeps in the open"))
    keep.again(linked, scope="user")
    with store.deciding("add", actor="test") as deciding:
        deciding.put(linked.replace(id="ENG-2020-0101-001", name="older"))
    store.note_verdict("quality", "REJECTED", clock())
    StoreSpend(store).spend_tokens(date(2026, 3, 1), 5)
    store.append_events("talk", [said("Ann", f"{WORDS} {n}", n, key=f"k{n}") for n in range(3)])
    store.append_events("talk", [said("Ann", "once more", 4, key="k4")])
    store.save_record(Session("talk", WORDS, ("global",), clock(), None, WORDS))
    return first


def search(store: PostgresStore) -> None:
    """Every filter, exactly and by the index."""
    for filters in (*FILTERS.values(), EVERYTHING):
        meaning = store.embed([WORDS])
        assert meaning is not None
        found = store.candidates(Query(tuple(query_terms(f"{WORDS} zyzzyva")), meaning[0], 5), filters)
        store.count(filters)
        store.listing(filters, limit=5)
        numbers = [n for n, _ in (*found.lexical, *found.semantic)]
        stands = [stand for stand in store.document_positions(numbers).values() if stand.parent]
        store.passages(numbers, [PassageRange(stand.parent, 0, stand.last) for stand in stands], filters)
        for direction in ("outbound", "inbound", "any"):
            walk(store, ["ENG-2020-0101-001"], Hops(utc_now(), direction, None, 0.1, filters), 2, 5)
    with pytest.MonkeyPatch.context() as patch:
        store.build_nearest()
        patch.setattr(neighbours, "MAX_EXACT_SEARCH_VECTORS", 2)
        for filters in (Filters(), Filters(scopes=("user", "global"))):
            meaning = store.embed([WORDS])
            assert meaning is not None
            store.candidates(Query((), meaning[0], 5), filters)
            neighbours.nearest(store.context, neighbours.index_search(store.context, meaning[0], filters, 60, 1))
            neighbours.nearest(store.context, neighbours.exact_search(store.context, meaning[0], filters, 60, 1))


def read(store: PostgresStore, memory: Memory, clock: Clock) -> None:
    """Everything that is read by what it is called."""
    store.get("otter")
    store.id_by_name("otter", "global")
    store.owner_of(memory.id)
    store.exact(content_hash(memory.statement), "global")
    store.known_at(clock())
    store.history(memory.id)
    store.decisions(1)
    store.vectors(list(store.numbers([memory.id]).values()))
    store.links_to([memory.id])
    store.known_terms(query_terms(WORDS), ["global", "user"])
    store.frequencies(["zyzzyva"])
    store.heads("sleep", "global")
    store.note_use(Use("recalled", (memory.id,), clock(), "talk"))
    store.uses([memory.id])
    store.uses(session="talk")
    store.used_since(0)
    store.last_use("recalled")
    store.event(store.events("talk")[0].id)
    ledger_scope(store, "talk")
    store.verdicts(clock())
    StoreSpend(store).tokens_spent(date(2026, 3, 1))
    store.verify_ledgers()
    store.examine()
    store.facts()


def work(store: PostgresStore, clock: Clock) -> None:
    """Tasks, checkpoints, jobs and their workers."""
    now = clock()
    store.save_record(TaskRun("TASK-1", WORDS, "project:acme", now, now))
    job = Job("derive:1", "derive", now, now, {"quotes": WORDS})
    store.append_events("TASK-1", [said("Ann", "one more", key="more")], lambda made: [job])
    store.enqueue([replace(job, id=f"derive:{number}") for number in range(2, 4)])
    store.add_checkpoint("TASK-1", lambda n: Checkpoint("CKP-1", "TASK-1", n, now, WORDS))
    store.change_checkpoints("TASK-1", lambda held: held)
    store.list_records(Checkpoint, of="TASK-1")
    store.list_records(TaskRun, statuses=["running"], scopes=["project:acme"])
    store.list_records(Job, statuses=["waiting"])
    done, again = store.lease_jobs("me", now, now + timedelta(minutes=5), limit=2)
    store.settle_job(done, None)
    store.settle_job(again, replace(again, status="waiting", leased_until=None))
    store.change_task("TASK-1", lambda held: transition_task(held, "paused", now))
    for value in ({"turns": [1]}, {}, {"turns": [2]}):
        store.change_state("buffer/talk", lambda _, value=value: value)  # type: ignore[misc]
    assert store.state("buffer/talk") and store.states("buffer/")


def destroy(store: PostgresStore, memory: Memory, clock: Clock) -> None:
    """Purge what is quoted everywhere, prune what is old."""
    quoting = Keep(store, clock)("Another memory, decided upon because of the first")
    with store.deciding("update", actor="test", reason=f"because {WORDS}", about=[quoting.id]) as deciding:
        deciding.put(quoting.replace(rationale="so"))
    store.purge([memory.id], actor="test")
    store.purge([store.events("talk")[0].id], actor="test")
    store.save_record(Session("talk", "", ("global",), clock(), clock()))
    for dry_run in (True, False):
        store.prune(clock() + timedelta(days=1000), 30, 30, 30, dry_run=dry_run)
    store.note_use(Use("recalled", (quoting.id,), clock(), "talk"))
    store.sync()


def move(url: str, tenant: str, other: str) -> None:
    """To another tenant, twice: the second time there is nothing more."""
    ends = Endpoint(server=Place(url, tenant)), Endpoint(server=Place(url, other))
    for _ in range(2):
        assert transfer(*ends).differences == []


def embed_again(url: str, tenant: str, clock: Clock) -> None:
    """With another embedder, whose vectors take the place of the first one's."""
    store = open_store(url, tenant, Bytes(), clock=clock)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rebuild, "CACHE_SECONDS", 0)
            store.reembed()
    finally:
        store.close()
