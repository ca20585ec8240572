"""What the chain alone does not show: fields beside the digests, emptied events, ledgers under other names, a thinned journal."""

from collections.abc import Callable, Iterator
from datetime import timedelta

import pytest

from engram.model.records import Session
from engram.store.protocol import Store
from tests.backends import Backend
from tests.conformance.keeping import Keep, said
from tests.conformance.tampering import Record, Tamper, Word, tampering

TALK, QUIET = "talk", "quiet"


@pytest.fixture
def store(backend: Backend) -> Store:
    """A store with a ledger of five events and another that went on meanwhile."""
    opened = backend.store(keyword_only=True)
    opened.append_events(TALK, [said("Ann", f"line {n}", n, key=f"k{n}", task="T-1") for n in range(3)])
    opened.append_events(QUIET, [said("Ann", "nothing much")])
    opened.append_events(TALK, [said("Bob", f"line {n}", n, task="T-1") for n in (3, 4)])
    opened.append_events(QUIET, [said("Ann", "still nothing")])
    return opened


@pytest.fixture
def tamper(backend: Backend, store: Store, request: pytest.FixtureRequest) -> Iterator[Tamper]:
    with tampering(backend, store, lambda: request.getfixturevalue("postgres_server")) as way:
        yield way


def third(**fields: object) -> Callable[[list[Record]], list[Record]]:
    """The third event with other fields."""
    return lambda records: [*records[:2], records[2] | fields, *records[3:]]


def emptied(records: list[Record]) -> list[Record]:
    """The third event as a redaction leaves it."""
    kept = {name: value for name, value in records[2].items() if name not in ("salt", "key", "payload", "metadata")}
    return [*records[:2], kept | {"content": ""}, *records[3:]]


def of_talk(word: Word) -> bool:
    return word[:2] == ("ledger", TALK)


CHANGES = {
    "another task": third(task="T-2"),
    "a field nobody knows": third(approved_by="Eve"),
    "another spelling of the time": third(at="2026-02-01T09:02:00+01:00"),
    "an empty field that was not there": third(payload={}),
    "emptied without a redaction": emptied,
    "emptied, and other words put there": lambda records: [
        *records[:2],
        emptied(records)[2] | {"content": "something else"},
        *records[3:],
    ],
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_record_is_found_and_only_that(store: Store, tamper: Tamper, change: str) -> None:
    assert store.verify_ledgers() == []
    tamper.ledger(TALK, CHANGES[change])
    problems = store.verify_ledgers()
    assert problems and all(problem.startswith(TALK) for problem in problems), problems


def test_records_that_were_only_written_again_are_in_order(store: Store, tamper: Tamper) -> None:
    tamper.ledger(TALK, lambda records: records)
    assert store.verify_ledgers() == []


def test_a_redaction_is_true_because_the_journal_knows_of_it(store: Store, tamper: Tamper) -> None:
    store.purge([store.events(TALK)[2].id], actor="test")
    assert store.verify_ledgers() == []
    assert tamper.journal(lambda word: word[0] != "redact") == 1
    assert [problem for problem in store.verify_ledgers() if "records no redaction" in problem]


def test_a_redaction_is_known_after_the_journal_was_pruned(store: Store, keep: Keep, backend: Backend) -> None:
    store.purge([store.events(TALK)[2].id], actor="test")
    keep.again(keep("zebra"), statement="quagga")
    assert store.prune(backend.clock() + timedelta(days=800), 365, 0, 0, dry_run=False).images == 1
    assert store.verify_ledgers() == []


def test_events_emptied_with_the_memory_they_told_of_are_redactions_too(backend: Backend) -> None:
    mem = backend.client()
    mem.observe(TALK, "user", "The orchestra plays the xylophone")
    mem.forget(mem.add("The orchestra plays the xylophone").id, purge=True)
    [event] = mem.store.events(TALK)
    assert event.content == "" and mem.store.verify_ledgers() == []


def test_the_ledger_of_one_under_the_name_of_another_is_found(store: Store, tamper: Tamper) -> None:
    tamper.ledger(TALK, lambda records: records, to="T-9")
    problems = store.verify_ledgers()
    assert [problem for problem in problems if problem.startswith("T-9")], problems


def test_an_event_of_another_ledger_is_found(store: Store, tamper: Tamper) -> None:
    other = store.events(QUIET)[0]
    tamper.ledger(TALK, third(session=QUIET, id="EVT-20260201-000000000000", digest=other.digest))
    assert [problem for problem in store.verify_ledgers() if problem.startswith(f"{TALK}")]


def test_a_ledger_of_which_the_journal_says_nothing_any_more_is_found(store: Store, tamper: Tamper) -> None:
    assert tamper.journal(lambda word: not of_talk(word)) >= 2
    problems = store.verify_ledgers()
    assert [problem for problem in problems if problem.startswith(TALK) and "has no checkpoint" in problem], problems


def test_a_tail_cut_off_in_ledger_and_journal_is_missed_by_what_was_told_later(store: Store, tamper: Tamper) -> None:
    last = store.events(TALK)[-1]
    tamper.ledger(TALK, lambda records: records[:3])
    assert tamper.journal(lambda word: last.digest not in word[2]) == 1
    assert [problem for problem in store.verify_ledgers() if problem.startswith("journal:")]


def test_what_comes_after_a_pruned_ledger_still_links_up(store: Store, backend: Backend) -> None:
    now = backend.clock()
    store.save_record(Session(TALK, "", ("global",), now, now))
    assert len(store.prune(now + timedelta(days=800), 0, 0, 365, dry_run=False).ledgers) == 1
    again = backend.store(keyword_only=True)
    again.append_events(QUIET, [said("Ann", "and on")])
    again.save_record(Session(TALK, "", ("global",), now))
    again.append_events(TALK, [said("Ann", "anew")])
    assert again.verify_ledgers() == []
