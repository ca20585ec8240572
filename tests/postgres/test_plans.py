"""Every statement of the day uses an index, asked of the planner itself: as the ordinary role, row security on, among other tenants."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import psycopg
import pytest

from benchmarks.tenants import analyze
from engram import Engram
from engram.bench.speed import memories, questions
from engram.graph.graph import walk
from engram.model.memory import Association
from engram.model.records import Checkpoint, Job, Session, TaskRun, Use, transition_task
from engram.store.postgres import connections, neighbours
from engram.store.postgres.database import Database
from engram.store.postgres.setup import open_store
from engram.store.postgres.sql import _statements
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import Filters, Hops, PassageRange, Query, Store
from engram.store.states import is_paused
from engram.text.content_hash import content_hash
from engram.text.tokens import query_terms
from tests.backends import static_embedder
from tests.clock import Clock
from tests.conformance.keeping import Keep, said
from tests.postgres.server import Role, at_database, fresh_database

pytestmark = pytest.mark.heavy

MINE, OTHERS = "planned", 6
MEMORIES, TALKS = 1_000, 20
STRANGERS = 4_000
TASKS, LATEST_TASK = 80, "TASK-79"
RARE = Filters(types=("decision",))
IN_A_TASK = Filters(kinds=("event",), parents=("TASK-7",))
SPOKEN = Filters(kinds=("event",), roles=("Ann",))
CRITICAL = Filters(critical=True)
HOT = """
lexical near near_among listed exact by_id by_name named names_like changed_since records
alone together document_positions numbers vectors frequencies statistics facts mark purged uses_of uses_in used_since last_use
history known_at links_to event events_of events_by_key event_at newest_anchor session sessions verdicts lock_memories
known_documents meanings without_vector put_postings few_all few_scopes uncounted count_terms move_statistics
drop_postings drop_vectors move_vectors drop_names drop_relations drop_uses drop_documents drop_memories
blank_images blank_events uncount_terms drop_gone_terms
heads lineage links task lock_task share_task tasks tasks_in checkpoints last_checkpoint
due_jobs lock_job change_job drop_job
"""
"""What a question, a decision, a session, a task, its worker and a purge ask the server."""
INSERTED = "put_jobs put_task put_checkpoint put_events put_decision lock_ledger"
"""What only inserts: no table is read for it."""
WALKS = [(direction, types) for direction in ("outbound", "inbound", "any") for types in (None, ("semantic", "causal"))]
BY_KEY = {
    "heads": ("agent_memory", "conflict_key"),
    "lineage": ("agent_memory", "lineage"),
    "events_of": ("agent_events", "session"),
    "checkpoints": ("agent_checkpoints", "task"),
    "last_checkpoint": ("agent_checkpoints", "task"),
    "share_task": ("agent_task_runs", "id"),
}
"""Of which table each reads only what has the key that is asked for."""
UNTOLD = {
    "exact": ("documents", "hash"),
    "known_documents": ("documents", "id"),
    "heads": ("agent_memory", "conflict_key"),
    "lineage": ("agent_memory", "lineage"),
}
"""What every write asks, of a server that has no statistics yet, as during a first large import."""
INDEX_ONLY = {"lexical": "postings_pkey", "near": "memory_vectors_near"}


@dataclass(frozen=True, slots=True)
class Asked:
    """A statement as it went to the server."""

    text: str
    values: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Crowded:
    """A tenant among others, and each statement of its ordinary day."""

    url: str
    asked: dict[str, dict[str, Asked]]
    """By name, then by text: a statement can have more than one form."""


@pytest.fixture(scope="module")
def crowded(postgres_role: Role) -> Iterator[Crowded]:
    """Seven tenants of more than a thousand documents, thousands of small ones; then one tenant's day, written down."""
    clock = Clock()
    with fresh_database(postgres_role) as url:
        fill(url, clock)
        admin = at_database(postgres_role.server.admin_url, url.rpartition("/")[2])
        with psycopg.connect(admin) as connection:
            # A vacuum takes for visible to all only what is known to be on disk.
            connection.execute("SET synchronous_commit = on")
            add_neighbours(connection)
            add_strangers(connection)
        analyze(admin)
        store = open_store(url, MINE, static_embedder(), clock=clock)
        asked = written_down(store, clock)
        store.close()
        yield Crowded(url, asked)


def fill(url: str, clock: Clock) -> None:
    """Memories with names, links, uses and a past; sessions with events."""
    drafts: list[dict[str, Any]] = [dict(item) for item in memories(MEMORIES)]
    for number, draft in enumerate(drafts):
        draft |= {"name": f"memory-{number}"} | ({"type": "decision"} if number % 100 == 1 else {})
    with Engram.open(url=url, tenant=MINE, clock=clock) as mem:
        kept = mem.add_batch(drafts)
        with mem.store.deciding("link", actor="test", about=[memory.id for memory in kept]) as deciding:
            for one, other in pairwise(kept):
                links = (Association(other.id, "semantic", 0.5), Association(kept[0].id, "causal", 0.5))
                deciding.put(one.replace(associations=links, **versioned(int(one.name.removeprefix("memory-")))))
        lines = questions(15, MEMORIES)
        for number in range(TALKS):
            used = kept[number * 50 : number * 50 + 50]
            mem.store.note_use(Use("recalled", tuple(memory.id for memory in used), clock(), f"talk-{number}"))
            mem.store.save_record(Session(f"talk-{number}", "talking", ("global",), clock()))
            events = [said("Ann", f"{text} {number}", n, key=f"k{n}") for n, text in enumerate(lines)]
            mem.store.append_events(f"talk-{number}", events)
        fill_tasks(mem.store, clock)


def versioned(number: int) -> dict[str, Any]:
    """Every second memory is a version of a fact, of two of them one is in force; some are critical."""
    slot = {"critical_slot": "goal"} if number % 100 == 3 else {}
    if number % 2:
        return slot
    status = "superseded" if number % 4 else "active"
    return slot | {"lineage": f"LIN-{number // 4}", "conflict_key": f"slot-{number // 4}", "status": status}


def fill_tasks(store: Store, clock: Clock) -> None:
    """Runs in every state with their ledgers and checkpoints, and jobs of which most wait."""
    now = clock()
    for number in range(TASKS):
        task = f"TASK-{number}"
        store.save_record(TaskRun(task, "Ship it", "project:acme", now + timedelta(seconds=number), now))
        events = [said("Ann", f"the step {n} of {task}", n, key=f"k{n}") for n in range(2)]
        store.append_events(task, events, lambda made: [derived(made[0].id, now)])
        store.add_checkpoint(task, lambda n, task=task: Checkpoint(f"CKP-{task}", task, n, now, "half way"))  # type: ignore[misc]
        if number % 10:
            store.change_task(task, lambda held: transition_task(held, "completed", now))
    store.enqueue([replace(derived(f"dead {n}", now), status="dead") for n in range(100)])
    store.enqueue([derived(f"waits {n}", now) for n in range(1_000)])


def derived(name: str, now: datetime) -> Job:
    """A job that is due at once."""
    return Job(name, "derive", now, now, {"events": [name]})


def add_neighbours(admin: psycopg.Connection) -> None:
    """Six more tenants with the same rows."""
    tables = admin.execute(
        "SELECT table_name::text, string_agg(quote_ident(column_name), ', ') FROM information_schema.columns "
        "WHERE table_schema = 'engram' AND table_name <> 'schema_versions' AND column_name <> 'tenant' "
        "AND is_generated = 'NEVER' GROUP BY table_name"
    ).fetchall()
    for table, columns in tables:
        admin.execute(
            f"INSERT INTO engram.{table} (tenant, {columns}) SELECT 'other-' || i, {columns} "
            f"FROM engram.{table}, generate_series(1, {OTHERS}) AS i".encode()
        )


def add_strangers(admin: psycopg.Connection) -> None:
    """Thousands of tenants with a row or two: what is small in one store is large in a server."""
    for table, columns, values in (
        ("store_facts", "key, value", "'embedder', '\"x\"'"),
        ("scopes", "scope, change", "'global', 1"),
        ("id_numbers", "day, last", "'ENG-2026-0101', 1"),
        ("term_statistics", "counted_to, documents, length", "1, 1, 1"),
        ("ledger_heads", "session, seq, digest", "'talk', 1, 'x'"),
        ("agent_sessions", "id, task, scopes, started, summary", "'talk', '', '{}', now(), ''"),
        ("tombstones", "id", "'ENG-2026-0101-001'"),
        ("journal", "seq, at, op, actor, reason, session, ids", "-i, now(), 'add', '', '', '', '{}'"),
        ("gate_verdicts", "at, gate, outcome", "now(), 'quality', 'REJECTED'"),
        ("agent_task_runs", "id, status, created, record", "'TASK-1', 'running', now(), '{}'"),
        ("agent_checkpoints", "task, number, record", "'TASK-1', 1, '{}'"),
        ("memory_jobs", "id, kind, status, run_after, record", "'one', 'derive', 'waiting', now(), '{}'"),
    ):
        admin.execute(
            f"INSERT INTO engram.{table} (tenant, {columns}) SELECT 'stranger-' || i, {values} "
            f"FROM generate_series(1, {STRANGERS}) AS i".encode()
        )


def written_down(store: PostgresStore, clock: Clock) -> dict[str, dict[str, Asked]]:
    """One day of the store, with every statement it sent."""
    seen: dict[str, dict[str, Asked]] = {}
    templates = {re.split(r"[{]", text)[0]: name for name, text in _statements().items()}
    patched = pytest.MonkeyPatch()
    execute, alone = Database._execute, Database._run_alone

    def note(text: str, values: dict[str, Any]) -> None:
        known = [name for beginning, name in templates.items() if text.startswith(beginning)]
        if known:
            name = max(known, key=lambda name: len(_statements()[name]))
            seen.setdefault(name, {})[text] = Asked(text, {"tenant": MINE, **values})

    def noted(self: Database, connection: Any, text: Any, values: dict[str, Any], **how: Any) -> Any:
        note(text, values)
        return execute(self, connection, text, values, **how)

    def noted_alone(self: Database, text: str, values: dict[str, Any], settings: Any) -> Any:
        note(text, values)
        return alone(self, text, values, settings)

    with patched.context() as patch:
        patch.setattr(Database, "_run_alone", noted_alone)
        patch.setattr(Database, "_execute", noted)
        a_day(store, clock)
    return seen


def a_day(store: PostgresStore, clock: Clock) -> None:
    """What agents and their owner ask of a store."""
    ask(store)
    look_up(store, clock)
    work(store, clock)
    write(store, clock)


def ask(store: PostgresStore) -> None:
    """Search, widely and narrowly."""
    anything = Filters(kinds=("memory", "event"), statuses=None)
    for filters in (Filters(), anything, Filters(scopes=("user",)), RARE, IN_A_TASK, SPOKEN, CRITICAL):
        for question in questions(3, MEMORIES):
            meaning = store.embed([question])
            assert meaning is not None
            neighbours._is_narrow(store.context, filters)
            found = store.candidates(Query(tuple(query_terms(f"{question} zyzzyva")), meaning[0], 20), filters)
            numbers = [n for n, _ in (*found.lexical, *found.semantic)]
            store.get_many(numbers)
            store.vectors(numbers)
            store.document_positions(numbers)
            stands = [stand for stand in found.positions.values() if stand.parent][:3]
            store.passages(numbers, [PassageRange(stand.parent, 0, stand.last) for stand in stands], filters)


def look_up(store: PostgresStore, clock: Clock) -> None:
    """Everything that is read by what it is called."""
    memory = store.get("memory-77")
    assert memory is not None
    store.id_by_name("memory-77", memory.scope)
    store.exact(content_hash(memory.statement), memory.scope)
    store.listing(Filters(), limit=20)
    store.listing(CRITICAL, limit=20)
    store.known_at(clock())
    store.history(memory.id)
    store.numbers([memory.id])
    store.links_to([memory.id])
    for direction, types in WALKS:
        walk(store, [memory.id], Hops(clock(), direction, types, 0.1), 3, 20)
    store.heads("slot-17", memory.scope)
    store.lineage("LIN-17")
    store.mark("user")
    assert not is_paused(store)
    store.uses([memory.id])
    store.uses(session="talk-10")
    store.used_since(10**9)
    store.last_use("recalled")
    store.event(store.events("talk-3")[0].id)
    store.load_record(Session, "talk-3")
    store.list_records(Session, limit=10)
    store.verdicts(clock())


def work(store: PostgresStore, clock: Clock) -> None:
    """A task goes on: its ledger is read, written and summed up, a worker takes what follows."""
    store.list_records(TaskRun, limit=20)
    store.list_records(TaskRun, statuses=["running", "paused"], limit=20)
    store.load_record(TaskRun, LATEST_TASK)
    store.change_task("TASK-10", lambda held: transition_task(held, "paused", clock()))
    store.append_events("TASK-20", [said("Ann", "one more", key="more")], lambda made: [derived(made[0].id, clock())])
    store.events("TASK-20", last=2)
    store.events("TASK-20", after=1)
    store.add_checkpoint("TASK-20", lambda n: Checkpoint("CKP-20-2", "TASK-20", n, clock(), "nearly done"))
    store.list_records(Checkpoint, of="TASK-20", limit=1)
    until = clock() + timedelta(minutes=5)
    for kinds in (None, ("derive",)):
        done, again = store.lease_jobs("me", clock(), until, kinds=kinds, limit=2)
        store.settle_job(done, None)
        store.settle_job(again, replace(again, status="waiting", leased_until=None))


def write(store: PostgresStore, clock: Clock) -> None:
    """Decide, reword, move, say and destroy."""
    keep = Keep(store, clock)
    mark = store.mark("global")
    new = keep("The otter sleeps in the boathouse", name="otter")
    keep("The heron sleeps in the reeds")
    with store.deciding("update", actor="test", scopes=["global"], about=[new.id]) as deciding:
        deciding.exact(content_hash("The otter sleeps"), "global")
        deciding.changed_since("global", mark)
        deciding.free_name("otter", "global")
        deciding.heads("slot-17", "global")
        deciding.lineage("LIN-17")
        deciding.get(new.id)
        deciding.put(new.replace(statement="The otter sleeps in the reeds"))
    keep.again(new, statement="The otter sleeps in the reeds", scope="user")
    with store.deciding("add", actor="test") as deciding:
        deciding.put(new.replace(id="ENG-2020-0101-001", name="older"))
    store.append_events("talk-3", [said("Ann", "the otter again", 11, key="otter")])
    store.note_use(Use("recalled", (new.id,), clock(), "talk-10"))
    store.purge([new.id, store.events("talk-4")[0].id], actor="test")


@pytest.fixture
def planner(crowded: Crowded) -> Iterator[psycopg.Connection]:
    """The ordinary role, its tenant set; nothing it does is kept."""
    with psycopg.connect(crowded.url) as connection:
        connections.register_vectors(connection)
        connection.execute("SELECT set_config('engram.tenant', %s, true)", (MINE,))
        yield connection
        connection.rollback()


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every step of a plan."""
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def planned(planner: psycopg.Connection, asked: Asked) -> list[dict[str, Any]]:
    """How the server would do it with these values."""
    row = planner.execute(f"EXPLAIN (FORMAT JSON) {asked.text}".encode(), asked.values).fetchone()
    assert row is not None
    return list(nodes(row[0][0]["Plan"]))


def planned_for_any(planner: psycopg.Connection, asked: Asked) -> list[dict[str, Any]]:
    """How the server would do it whatever the values are, as it does for a statement that comes often."""
    places: dict[str, str] = {}
    text = re.sub(r"%\((\w+)\)[sb]", lambda m: places.setdefault(m.group(1), f"${len(places) + 1}"), asked.text)
    row = planner.execute(f"EXPLAIN (FORMAT JSON, GENERIC_PLAN) {text.replace('%%', '%')}".encode()).fetchone()
    assert row is not None
    return list(nodes(row[0][0]["Plan"]))


def read_whole(steps: list[dict[str, Any]]) -> list[str]:
    """Tables that a plan reads from one end to the other."""
    return [step["Relation Name"] for step in steps if step["Node Type"] == "Seq Scan"]


def test_the_day_held_every_hot_statement(crowded: Crowded) -> None:
    assert {*HOT.split(), *INSERTED.split()} - set(crowded.asked) == set()


def test_every_hot_statement_uses_an_index(crowded: Crowded, planner: psycopg.Connection) -> None:
    for name in HOT.split():
        for asked in crowded.asked[name].values():
            for steps in (planned(planner, asked), planned_for_any(planner, asked)):
                assert read_whole(steps) == [], (name, asked.text)
                assert any("Index Name" in step for step in steps), (name, asked.text)


def test_what_only_inserts_reads_no_table(crowded: Crowded, planner: psycopg.Connection) -> None:
    for name in INSERTED.split():
        for asked in crowded.asked[name].values():
            for steps in (planned(planner, asked), planned_for_any(planner, asked)):
                assert read_whole(steps) == [], (name, asked.text)


def test_a_walk_is_asked_for_in_every_direction(crowded: Crowded) -> None:
    assert len(crowded.asked["links"]) == len(WALKS)


def test_what_has_a_key_is_found_by_it_and_not_among_all_of_the_tenant(
    crowded: Crowded, planner: psycopg.Connection
) -> None:
    for name, (table, key) in BY_KEY.items():
        for asked in crowded.asked[name].values():
            for steps in (planned(planner, asked), planned_for_any(planner, asked)):
                conditions = [s.get("Index Cond", "") for s in steps if s.get("Index Name", "").startswith(table)]
                assert conditions and all(f"({key} = " in condition for condition in conditions), (name, conditions)


def test_what_has_a_key_is_found_by_it_before_there_are_statistics(crowded: Crowded, postgres_role: Role) -> None:
    with fresh_database(postgres_role) as url:
        with Engram.open(url=url, tenant=MINE) as mem:
            mem.add_batch([{**draft, "scope": "global"} for draft in memories(600)])
        with psycopg.connect(url) as planner:
            planner.execute("SELECT set_config('engram.tenant', %s, true)", (MINE,))
            for name, (table, key) in UNTOLD.items():
                for asked in crowded.asked[name].values():
                    steps = planned(planner, asked)
                    conditions = [s.get("Index Cond", "") for s in steps if s.get("Index Name", "").startswith(table)]
                    assert any(f"({key} = " in condition for condition in conditions), (name, conditions)


def test_who_speaks_is_asked_of_the_events_that_were_found_and_of_no_other(
    crowded: Crowded, planner: psycopg.Connection
) -> None:
    spoken = [asked for name in ("lexical", "near", "together") for asked in crowded.asked[name].values()]
    spoken = [asked for asked in spoken if "'role'" in asked.text]
    assert len(spoken) == 3
    for asked in spoken:
        for steps in (planned(planner, asked), planned_for_any(planner, asked)):
            conditions = [s.get("Index Cond", "") for s in steps if s.get("Index Name", "").startswith("agent_events")]
            assert conditions and all("(id = " in condition for condition in conditions), conditions


def test_the_next_job_is_found_without_sorting_those_that_wait(crowded: Crowded, planner: psycopg.Connection) -> None:
    for asked in crowded.asked["due_jobs"].values():
        for steps in (planned(planner, asked), planned_for_any(planner, asked)):
            assert "Sort" not in {step["Node Type"] for step in steps}, steps


def test_a_search_reads_its_index_and_not_the_table(crowded: Crowded, planner: psycopg.Connection) -> None:
    for name, index in INDEX_ONLY.items():
        table = index.rpartition("_")[0]
        for asked in crowded.asked[name].values():
            for steps in (planned(planner, asked), planned_for_any(planner, asked)):
                reading = [(s["Node Type"], s["Index Name"]) for s in steps if s.get("Relation Name") == table]
                assert set(reading) == {("Index Only Scan", index)}, asked.text
