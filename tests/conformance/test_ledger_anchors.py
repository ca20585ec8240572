"""The journal witnesses where each ledger ends: whoever rewrites a ledger past Engram cannot rewrite that unseen."""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest

from engram.disk import json_line
from engram.model.memory import Memory
from engram.model.records import Event, Session
from engram.store.files.store import writer as ledger_files
from engram.store.files.store.backend import FilesStore
from engram.store.ledger import body_digest, chain_digest, decode_event, to_fields
from engram.store.protocol import Store
from tests.backends import Backend, OnPostgres
from tests.clock import Clock
from tests.conformance.keeping import Keep, said
from tests.postgres.server import Server

Change = Callable[[list[Event]], list[Event]]
Rewrite = Callable[[Change], None]
TALK = "talk"


@pytest.fixture
def store(backend: Backend) -> Store:
    """A store with two ledgers of five events, one of which nobody touches."""
    opened = backend.store()
    for name in (TALK, "quiet"):
        opened.append_events(name, [said("Ann", f"line {n} of {name}", n, key=f"k{n}") for n in range(3)])
        opened.append_events(name, [said("Bob", f"line {n} of {name}", n) for n in (3, 4)])
    return opened


@pytest.fixture
def rewrite(backend: Backend, store: Store, request: pytest.FixtureRequest) -> Iterator[Rewrite]:
    """Rewrites a ledger as somebody would who can write to the disk or the tables, the table's head included."""
    if isinstance(store, FilesStore):
        path = store.context.ledger.path(TALK)

        def in_files(change: Change) -> None:
            held = change([decode_event(line) for line in path.read_text("utf-8").splitlines()])
            path.write_bytes(b"".join(json_line(to_fields(event)) for event in held))
            if not held:
                path.unlink()

        yield in_files
        return
    assert isinstance(backend, OnPostgres)
    server: Server = request.getfixturevalue("postgres_server")
    with server.admin(urlsplit(backend.url).path.lstrip("/")) as admin:
        tenant = backend.tenant
        yield lambda change: _in_tables(admin, tenant, change)


def _in_tables(admin: psycopg.Connection, tenant: str, change: Change) -> None:
    place = (tenant, TALK)
    rows = admin.execute(
        "SELECT record::text FROM engram.agent_events WHERE tenant = %s AND session = %s ORDER BY seq", place
    ).fetchall()
    held = change([decode_event(record) for (record,) in rows])
    for table in ("agent_events", "ledger_heads"):
        admin.execute(f"DELETE FROM engram.{table} WHERE tenant = %s AND session = %s".encode(), place)
    for seq, event in enumerate(held, 1):
        admin.execute(
            "INSERT INTO engram.agent_events (tenant, id, session, seq, key, record) VALUES (%s, %s, %s, %s, %s, %s::json)",
            (tenant, event.id, TALK, seq, event.key, json.dumps(to_fields(event))),
        )
    if held:
        admin.execute("INSERT INTO engram.ledger_heads VALUES (%s, %s, %s, %s)", (*place, len(held), held[-1].digest))


def forged(events: list[Event], **changes: Any) -> list[Event]:
    """The events as a whole chain, numbered anew and with fresh digests: by itself it verifies."""
    made: list[Event] = []
    for n, event in enumerate(events, 1):
        placed = replace(event, seq=n, prev=made[-1].digest if made else "", **changes)
        said = replace(placed, body=body_digest(placed))
        made.append(replace(said, digest=chain_digest(said)))
    return made


def swapped(events: list[Event]) -> list[Event]:
    return [events[1], events[0], *events[2:]]


def reworded(events: list[Event]) -> list[Event]:
    return [*events[:2], replace(events[2], content="something else"), *events[3:]]


def inserted(events: list[Event]) -> list[Event]:
    return [*events[:2], replace(events[1], id="EVT-20260201-forged", key="", content="never said"), *events[2:]]


BREACHES: dict[str, Change] = {
    "an event altered": reworded,
    "two events reordered": swapped,
    "an event inserted": inserted,
    "an event dropped in the middle": lambda events: [*events[:2], *events[3:]],
    "the first event dropped": lambda events: events[1:],
    "the last event dropped": lambda events: events[:-1],
    "several dropped at the end": lambda events: events[:2],
    "all dropped": lambda events: [],
    "an event altered, the chain forged anew": lambda events: forged(reworded(events)),
    "two events reordered, the chain forged anew": lambda events: forged(swapped(events)),
    "an event inserted, the chain forged anew": lambda events: forged(inserted(events)),
    "an event dropped in the middle, the chain forged anew": lambda events: forged([*events[:2], *events[3:]]),
    "said by somebody else, the chain forged anew": lambda events: forged(events, role="Eve"),
}


@pytest.mark.parametrize("breach", BREACHES)
def test_a_rewritten_ledger_is_found_and_only_that(store: Store, rewrite: Rewrite, breach: str) -> None:
    assert store.verify_ledgers() == []
    rewrite(BREACHES[breach])
    problems = store.verify_ledgers()
    assert problems and all(problem.startswith(TALK) for problem in problems), problems


@pytest.mark.parametrize("breach", ["the last event dropped", "all dropped"])
def test_the_problem_says_which_event_is_gone(store: Store, rewrite: Rewrite, breach: str) -> None:
    rewrite(BREACHES[breach])
    assert [problem for problem in store.verify_ledgers() if "event 5 is missing or was altered" in problem]


def test_a_rewritten_ledger_is_found_by_whoever_opens_the_store_next(
    backend: Backend, store: Store, rewrite: Rewrite
) -> None:
    rewrite(BREACHES["the last event dropped"])
    later = backend.store()
    later.sync()
    assert later.verify_ledgers()
    later.rebuild()
    assert later.verify_ledgers()


def test_a_repeated_event_moves_no_end(store: Store) -> None:
    store.append_events(TALK, [said("Ann", "line 0 of talk", 0, key="k0")])
    assert store.verify_ledgers() == []


def test_a_purge_leaves_the_chain_whole(store: Store, rewrite: Rewrite) -> None:
    store.purge([store.events(TALK)[-1].id, store.events(TALK)[1].id], actor="test")
    assert store.verify_ledgers() == []
    rewrite(lambda events: events[:-1])
    assert store.verify_ledgers()


def test_what_is_said_after_a_purge_follows_on(store: Store) -> None:
    store.purge([store.events(TALK)[-1].id], actor="test")
    store.append_events(TALK, [said("Ann", "once more")])
    assert store.verify_ledgers() == [] and store.events(TALK)[-1].seq == 6


def prune(store: Store, clock: Clock) -> None:
    """Let go of everything that is a year old, the ended session's ledger with it."""
    store.save_record(Session(TALK, "", ("global",), clock(), clock()))
    assert len(store.prune(clock() + timedelta(days=800), 365, 365, 365, dry_run=False).ledgers) == 1


def test_a_pruned_ledger_is_not_lost(backend: Backend, store: Store, clock: Clock) -> None:
    prune(store, clock)
    assert store.events(TALK) == [] and store.verify_ledgers() == []
    assert backend.store().verify_ledgers() == []


def test_a_ledger_that_begins_anew_after_pruning_is_witnessed_again(
    store: Store, rewrite: Rewrite, clock: Clock
) -> None:
    prune(store, clock)
    store.save_record(Session(TALK, "", ("global",), clock()))
    store.append_events(TALK, [said("Ann", f"anew {n}") for n in range(2)])
    assert [event.seq for event in store.events(TALK)] == [1, 2] and store.verify_ledgers() == []
    rewrite(lambda events: events[:1])
    assert store.verify_ledgers()


def test_pruning_the_journal_keeps_where_the_ledgers_end(
    store: Store, keep: Keep, rewrite: Rewrite, clock: Clock
) -> None:
    kept = keep("zebra")
    keep.again(kept, statement="quagga")
    assert store.prune(clock() + timedelta(days=800), 365, 0, 0, dry_run=False).images == 1
    assert store.verify_ledgers() == []
    rewrite(BREACHES["the last event dropped"])
    assert store.verify_ledgers()


def test_an_altered_witness_is_told_and_breaks_nothing(store: Store, clock: Clock) -> None:
    with store.deciding("ledger", actor="somebody", reason="no number at all", session=TALK) as deciding:
        deciding.put(Memory(deciding.new_id(clock()), "a decision that claims to be a witness", created=clock()))
    assert [problem for problem in store.verify_ledgers() if "altered" in problem]


def test_witnesses_are_no_part_of_any_memory_and_trouble_no_one(backend: Backend, clock: Clock) -> None:
    mem = backend.client()
    kept = mem.add("The api listens on port 8080")
    mem.observe_batch("talk", [{"role": "user", "content": "which port"}])
    mem.update(kept.id, rationale="it always did")
    assert [image.op for image in mem.store.history(kept.id)] == ["add", "update"]
    assert mem.doctor().ok is True
    mem.undo(kept.id)
    assert mem.get(kept.id).rationale == "" and mem.store.verify_ledgers() == []
    mem.rebuild_index()
    assert mem.store.known_at(clock()) is not None and len(mem.store.events("talk")) == 1


class Crash(BaseException):
    """The process ends here."""


def test_events_whose_witness_a_crash_prevented_raise_no_alarm(
    backend: Backend, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def crash(*_: object) -> None:
        raise Crash

    with monkeypatch.context() as patch, pytest.raises(Crash):
        patch.setattr(ledger_files, "_journal_end", crash)
        patch.setattr("engram.store.postgres.work.checkpoint_entry", crash)
        store.append_events(TALK, [said("Ann", "the last word", key="last")])
    for later in (store, backend.store()):
        assert later.verify_ledgers() == []
    again = backend.store()
    again.append_events(TALK, [said("Ann", "the last word", key="last")])
    assert [event.content for event in again.events(TALK)][5:] == ["the last word"]
    again.append_events(TALK, [said("Ann", "and one more")])
    assert again.verify_ledgers() == [] and len(again.events(TALK)) == 7


def test_a_tail_that_was_cut_off_shows_after_more_was_appended(backend: Backend, clock: Clock) -> None:
    """The new end is in the journal too; the old one must not be forgotten over it."""
    from engram.store.ledger import FIRST_LINK, LEDGER_OP, Head, checkpoint_text, missing_events

    store = backend.store()
    made = store.append_events("talk", [said("user", "one"), said("user", "two"), said("user", "three")])
    more = store.append_events("talk", [said("user", "four")])
    ends = [checkpoint_text(Head(e.seq, e.digest), FIRST_LINK) for e in (made[-1], more[-1])]
    standing = {1: made[0].digest, 2: "another", 4: more[-1].digest}
    assert LEDGER_OP == "ledger"
    assert "event 3" in missing_events("talk", ends, standing.get)[0]
    assert store.verify_ledgers() == []
