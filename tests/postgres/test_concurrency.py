"""Many processes and threads on one store: nothing collides, nothing is lost, nobody waits for a stranger."""

import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest

from engram import Engram
from engram.model.errors import StoreBusy
from engram.model.memory import Memory
from engram.model.records import Use
from engram.rules.lifecycle import REINFORCING, session_key
from engram.store.postgres.connections import MAX_CONNECTIONS
from engram.store.postgres.store import PostgresStore
from engram.store.protocol import ProposalKeys
from engram.store.states import is_paused
from tests.clock import Clock
from tests.conformance.keeping import ANY, listed
from tests.faults.workers.operations import sentence
from tests.postgres.limits import shorten
from tests.postgres.workers.agreement import disagreements
from tests.postgres.workers.parts import PLACES, VERBS
from tests.postgres.workers.starting import Crowd, crowd

PATIENCE = 120.0
"""Seconds after which something counts as hung; on a busy machine everything takes a few."""
TIMES = 2
"""How often every verb has been carried through before a crowd is asked to stop."""
MINE = "application_name = 'engram' AND datname = current_database()"


@pytest.fixture
def mem(database: str, tenant: str) -> Iterator[Engram]:
    """A memory alone in its database."""
    with Engram.open(url=database, tenant=tenant) as opened:
        yield opened


def ask(url: str, question: str) -> int:
    """A number the server knows."""
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(question.encode()).fetchone()
    assert row is not None
    return int(row[0])


def deadlocks(url: str) -> int:
    """How many this database has seen; the server adds up when those who worked there are gone."""
    deadline = time.monotonic() + PATIENCE
    while ask(url, f"SELECT count(*) FROM pg_stat_activity WHERE {MINE}"):
        assert time.monotonic() < deadline, "somebody is still connected"
    return ask(url, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")


def test_many_writers_never_share_an_id_or_a_name(database: str, tenant: str, tmp_path: Path) -> None:
    with crowd("learning", tmp_path, 2, 4, url=database, tenant=tenant, rounds=3) as everyone:
        everyone.begin()
        told = everyone.end()
    made = [pair for line in told for pair in line.get("made", {}).items()]
    assert len(made) == 2 * 4 * 3 * 3
    assert len(dict(made)) == len(made)
    with Engram.open(url=database, tenant=tenant) as mem:
        assert {memory.id: memory.statement for memory in mem.list(limit=None)} == dict(made)
    assert disagreements(database, tenant) == []
    assert deadlocks(database) == 0


def test_what_all_learn_at_once_is_one_memory(database: str, tenant: str, tmp_path: Path) -> None:
    with crowd("agreeing", tmp_path, 2, 4, url=database, tenant=tenant, rounds=4) as everyone:
        everyone.begin()
        told = everyone.end()
    with Engram.open(url=database, tenant=tenant) as mem:
        for number in range(4):
            answers = [line for line in told if line.get("round") == number]
            assert Counter(line["outcome"] for line in answers) == {"CREATED": 1, "DUPLICATE": 7}
            (memory_id,) = {line["id"] for line in answers}
            again = {line["session"] for line in answers if line["outcome"] == "DUPLICATE"}
            assert mem.get(memory_id).derivation_count == 1 + len(again)
        assert len(mem.list(limit=None)) == 4
    assert disagreements(database, tenant) == []
    assert deadlocks(database) == 0


def test_contradicting_facts_leave_one_in_force_and_one_line_of_descent(
    database: str, tenant: str, tmp_path: Path
) -> None:
    with crowd("disagreeing", tmp_path, 2, 4, url=database, tenant=tenant, rounds=2) as everyone:
        everyone.begin()
        told = [line for line in everyone.end() if "keyed" in line]
    with Engram.open(url=database, tenant=tenant) as mem:
        keyed = [mem.get(line["keyed"]) for line in told]
        by_id = {memory.id: memory for memory in keyed}
        (head,) = [memory for memory in keyed if memory.status == "active"]
        line = _descent(head, by_id)
        assert [memory.revision for memory in line] == list(range(len(keyed), 0, -1))
        assert {memory.status for memory in line[1:]} == {"superseded"}
        loose = Counter(mem.get(answer["loose"]).status for answer in told)
        assert loose == {"active": 1, "candidate": len(told) - 1}
    assert Counter(answer["outcome"] for answer in told) == {"CREATED": 1, "SUPERSEDED": len(told) - 1}
    assert disagreements(database, tenant) == []
    assert deadlocks(database) == 0


def _descent(head: Memory, by_id: dict[str, Memory]) -> list[Memory]:
    """A memory and all it took the place of, newest first; each knows its successor."""
    line = [head]
    while line[-1].supersedes:
        (before,) = line[-1].supersedes
        assert by_id[before].superseded_by == line[-1].id
        line.append(by_id[before])
    return line


@pytest.mark.heavy
def test_every_verb_at_once_over_the_same_few_memories_loses_nothing(
    mem: Engram, database: str, tenant: str, tmp_path: Path
) -> None:
    texts = [f"{sentence(n)} stands" for n in range(900, 906)]
    scopes = [PLACES[n % 2] for n in range(6)]
    kept = mem.add_batch([{"statement": text, "scope": scope} for text, scope in zip(texts, scopes, strict=True)])
    counted = [memory.id for memory in kept]
    asked = {"url": database, "tenant": tenant, "texts": texts, "scopes": scopes, "counted": counted}
    with crowd("mingling", tmp_path, 2, 4, **asked) as everyone:
        everyone.begin()
        _wait_until_every_verb_was_done(everyone)
        told = everyone.end()
    mem.upkeep.fold()
    ratings = Counter(line["rated"] for line in told if "rated" in line)
    derived = {(line["derived"], line["session"]) for line in told if "derived" in line}
    noted = {line["used"] for line in told if "used" in line}
    assert {line["outcome"] for line in told if "derived" in line} == {"DUPLICATE"}
    for memory_id in counted:
        memory, uses = mem.get(memory_id), mem.store.uses([memory_id])
        sittings = {session_key(use) for use in uses if use.kind in REINFORCING}
        again = [session for target, session in derived if target == memory_id]
        assert memory.feedback.positive == ratings[memory_id]
        assert memory.derivation_count == 1 + len(again)
        assert memory.activation.frequency == len(sittings) + len(again)
        assert {session for session in noted if session.startswith("U-")} <= sittings
    mem.close()
    assert disagreements(database, tenant) == []
    assert deadlocks(database) == 0


def _wait_until_every_verb_was_done(everyone: Crowd) -> None:
    deadline = time.monotonic() + PATIENCE
    while True:
        told = everyone.told
        assert not [line for line in told if "error" in line], told[-1]
        done = Counter(line["did"] for line in told if "did" in line)
        if all(done[verb.__name__] >= TIMES for verb in VERBS):
            return
        assert time.monotonic() < deadline, done
        time.sleep(0.05)


# -- who waits for whom


@pytest.fixture
def undecided(mem: Engram, database: str, tenant: str) -> Iterator[threading.Event]:
    """Another process is in the middle of a decision in `project:shared`, until the event is set."""
    holding, release = threading.Event(), threading.Event()

    def hold() -> None:
        with (
            Engram.open(url=database, tenant=tenant) as other,
            other.store.deciding("add", actor="test", scopes=["project:shared"]),
        ):
            holding.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert holding.wait(PATIENCE)
    yield release
    release.set()
    thread.join(PATIENCE)


def test_a_decision_in_one_scope_holds_up_nobody_elsewhere(mem: Engram, undecided: threading.Event) -> None:
    apart = mem.learn(sentence(1), scope="project:apart").memory
    assert apart is not None
    mem.feedback(apart.id, "positive")
    mem.pin(apart.id)
    mem.observe("talk", "user", sentence(2))
    assert [hit.id for hit in mem.recall(sentence(1), scope=PLACES).hits] == [apart.id]
    assert len(mem.list(scope="project:shared")) == 0
    assert not undecided.is_set()


def test_a_decision_in_the_same_scope_waits_its_turn_and_then_says_what_to_do(
    mem: Engram, undecided: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    shorten(monkeypatch, mem, lock=0.3)
    with pytest.raises(StoreBusy, match="nothing was written; try again"):
        mem.learn(sentence(1), scope="project:shared")
    assert not undecided.is_set()
    assert mem.list() == []
    undecided.set()
    shorten(monkeypatch, mem, lock=PATIENCE)
    assert mem.learn(sentence(1), scope="project:shared").memory is not None


def test_a_decision_about_a_memory_waits_for_the_one_before_it(
    mem: Engram, database: str, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept, other = mem.add(sentence(1)), mem.add(sentence(2))
    shorten(monkeypatch, mem, lock=0.3)
    with (
        ThreadPoolExecutor(1) as elsewhere,
        mem.store.deciding("update", actor="test", about=[kept.id]) as deciding,
    ):
        deciding.put(kept.replace(rationale="decided here"))
        with pytest.raises(StoreBusy, match="try again"):
            elsewhere.submit(mem.pin, kept.id).result(PATIENCE)
        elsewhere.submit(mem.pin, other.id).result(PATIENCE)
    assert (mem.get(kept.id).rationale, mem.get(kept.id).pinned, mem.get(other.id).pinned) == (
        "decided here", False, True,
    )  # fmt: skip


def test_a_long_read_holds_up_no_writer(mem: Engram, database: str, tenant: str) -> None:
    kept = mem.add(sentence(1), scope="project:shared")
    with psycopg.connect(database) as reading:
        reading.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reading.execute("SELECT set_config('engram.tenant', %s, false)", (tenant,))
        for table in ("agent_memory", "documents", "postings", "memory_vectors", "scopes", "id_numbers", "journal"):
            reading.execute(f"SELECT count(*) FROM engram.{table}".encode())
        assert mem.learn(sentence(2), scope="project:shared").memory is not None
        mem.update(kept.id, statement=sentence(3))
        mem.forget(kept.id, purge=True)
        assert reading.execute("SELECT count(*) FROM engram.agent_memory").fetchone() == (1,)
    assert listed(mem.store, ANY) == [sentence(2)]


# -- connections


def test_many_threads_keep_to_the_connections_of_the_pool(mem: Engram, database: str) -> None:
    threads = 32
    assert isinstance(mem.store, PostgresStore)
    barrier, most, over = threading.Barrier(threads), [0], threading.Event()

    def watch() -> None:
        with psycopg.connect(database, autocommit=True) as watching:
            while not over.is_set():
                row = watching.execute(f"SELECT count(*) FROM pg_stat_activity WHERE {MINE}".encode()).fetchone()
                most[0] = max(most[0], row[0] if row else 0)

    def work(number: int) -> None:
        barrier.wait(PATIENCE)
        mem.add(sentence(number), scope=f"project:{number % 4}")
        assert mem.search(sentence(number), mode="keyword")[0].text == sentence(number)

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        with ThreadPoolExecutor(threads) as everyone:
            list(everyone.map(work, range(threads)))
    finally:
        over.set()
        watcher.join(PATIENCE)
    assert len(mem.list(limit=None)) == threads
    kept = ask(database, f"SELECT count(*) FROM pg_stat_activity WHERE {MINE}")
    assert 1 < max(kept, most[0]) <= MAX_CONNECTIONS


def test_a_decision_needs_no_second_connection_of_the_pool(mem: Engram, clock: Clock) -> None:
    kept = mem.add(sentence(900))
    everyone = threading.Barrier(MAX_CONNECTIONS)

    def decide(number: int) -> str:
        scope = f"project:{number}"
        with mem.store.deciding("add", actor="test", scopes=[scope], ids_for=[clock()]) as deciding:
            everyone.wait(PATIENCE)
            memory = Memory(deciding.new_id(clock()), sentence(number), scope, created=clock())
            mem.store.note_use(Use("recalled", (kept.id,), clock(), f"S-{number}"))
            assert mem.search(sentence(900))[0].id == kept.id
            assert mem.store.uses([kept.id])
            assert mem.store.history(kept.id)
            assert not is_paused(mem.store)
            everyone.wait(PATIENCE)
            deciding.put(memory)
        return memory.id

    with ThreadPoolExecutor(MAX_CONNECTIONS) as threads:
        made = list(threads.map(decide, range(MAX_CONNECTIONS)))
    assert len(set(made)) == MAX_CONNECTIONS
    assert len(mem.store.uses([kept.id])) == MAX_CONNECTIONS


def test_numbers_foreseen_and_not_used_are_given_back_beside_ids_from_elsewhere(mem: Engram, clock: Clock) -> None:
    """Both touch the day's counter, from two connections of one decision: whoever waits for itself is told it is busy."""
    now = clock()
    with mem.store.deciding("import", actor="test", scopes=["global"]) as deciding:
        deciding.prefetch([ProposalKeys("", "global", "")] * 5)
        first = deciding.new_id(now)
        deciding.put(Memory(first, sentence(1), created=now))
        deciding.put(Memory(f"ENG-{now:%Y-%m%d}-040", sentence(2), created=now))
    with mem.store.deciding("add", actor="test", scopes=["global"]) as deciding:
        assert deciding.new_id(now) > f"ENG-{now:%Y-%m%d}-040"
