"""Of hits that say different things about one slot, the newest comes first and the others say what replaced them."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.hit import Hit
from engram.model.memory import Association, Memory
from engram.recall.freshness import Claim, replacements_among
from engram.recall.recaller import Recall
from tests.clock import Clock


@pytest.fixture
def mem(tmp_path: Path, clock: Clock) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as opened:
        yield opened


def texts(answer: Recall) -> list[str]:
    return [hit.text for hit in answer.hits]


def on(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 12, tzinfo=UTC)


CHANGES = [
    ("Anna is the release manager", "Tom took over from Anna as release manager", "Who is the release manager?"),
    ("We track issues in Jira", "We moved our issues from Jira to Linear", "Where do we track our issues?"),
    ("The standup is at 9:30", "The standup has moved to 10:15", "When is the standup?"),
]


@pytest.mark.parametrize(("old", "new", "question"), CHANGES)
def test_what_was_told_later_comes_first_though_nothing_was_superseded(
    mem: Engram, clock: Clock, old: str, new: str, question: str
) -> None:
    before = mem.add(old, scope="global")
    clock.forward(days=20)
    after = mem.add(new, scope="global")
    answer = mem.recall(question)
    assert texts(answer)[0] == new
    outdated = {hit.id: hit.note for hit in answer.hits}.get(before.id, after.id)
    assert after.id in outdated


def test_two_current_memories_of_one_key_are_shown_newest_first(clock: Clock) -> None:
    older = Memory("ENG-2026-0101-001", "The office is in Bonn", conflict_key="office", created=on(2026, 1, 1))
    newer = Memory("ENG-2026-0201-001", "Our rooms are in Kiel", conflict_key="office", created=on(2026, 2, 1))
    found = replacements_among([newer, older], "Where is the office?")
    assert found.newest(older.id) == newer
    assert found.note(older) == "may be replaced by ENG-2026-0201-001: “Our rooms are in Kiel”"
    assert (found.newest(newer.id), found.note(newer)) == (None, "")


def test_a_less_trusted_statement_is_mentioned_and_does_not_come_first() -> None:
    link = Association("ENG-2026-0101-001", "contradicts")
    said = Memory("ENG-2026-0101-001", "The office is in Bonn", source="human", created=on(2026, 1, 1))
    read = Memory(
        "ENG-2026-0201-001", "The office is in Kiel", source="web", created=on(2026, 2, 1), associations=(link,)
    )
    found = replacements_among([said, read], "Where is the office?")
    assert found.newest(said.id) is None
    assert "ENG-2026-0201-001" in found.note(said)


def test_memories_of_different_situations_or_scopes_replace_nothing() -> None:
    apart = Association("ENG-2026-0101-001", "valid_elsewhere")
    home = Memory("ENG-2026-0101-001", "The port is 8080", conflict_key="port", created=on(2026, 1, 1))
    elsewhere = home.replace(id="ENG-2026-0102-001", associations=(apart,), created=on(2026, 1, 2))
    other_scope = home.replace(id="ENG-2026-0103-001", scope="project:acme", created=on(2026, 1, 3))
    assert not replacements_among([home, elsewhere], "Which port?")
    assert not replacements_among([home, other_scope], "Which port?")


def test_late_news_about_an_earlier_time_is_not_the_newest() -> None:
    now = Memory("ENG-2026-0101-001", "I live in Faro", conflict_key="home", created=on(2026, 1, 1))
    past = Memory(
        "ENG-2026-0201-001", "I live in Rome", conflict_key="home", created=on(2026, 2, 1), valid_from=on(2020, 1, 1)
    )
    found = replacements_among([now, past], "Where do I live?")
    assert found.newest(past.id) == now
    assert found.newest(now.id) is None


def test_a_fact_is_found_by_the_words_of_a_version_it_superseded(mem: Engram) -> None:
    mem.add("Our bookkeeping is done by Claes & Sons in Ledeberg", conflict_key="books", scope="global")
    mem.add("Fidunova has the ledgers from August on", conflict_key="books", scope="global")
    answer = mem.recall("Who does our bookkeeping?")
    assert texts(answer) == ["Fidunova has the ledgers from August on"]


def test_a_contradiction_that_waits_for_review_is_shown_with_its_state(mem: Engram, clock: Clock) -> None:
    old = mem.remember("The API listens on port 8080", scope="global").memory
    clock.forward(days=3)
    decided = mem.remember("The API listens on port 9090", scope="global")
    assert old is not None and decided.memory is not None
    assert decided.memory.status == "candidate"
    answer = mem.recall("Which port does the API listen on?")
    assert texts(answer) == ["The API listens on port 9090", "The API listens on port 8080"]
    assert answer.hits[0].note == "waits for review"
    replaced = f"may be replaced by {decided.memory.id}: “The API listens on port 9090”, which waits for review"
    assert answer.hits[1].note == f"disputed; {replaced}"


def test_a_look_alike_does_not_come_first(mem: Engram, clock: Clock) -> None:
    mem.add("Room 12 seats 8 people", scope="global")
    clock.forward(days=5)
    mem.add("Room 14 seats 20 people", scope="global")
    answer = mem.recall("How many people does room 12 seat?")
    assert texts(answer)[0] == "Room 12 seats 8 people"
    assert "replaced" not in answer.hits[0].note


def test_search_keeps_its_order_and_notes_what_is_outdated(mem: Engram, clock: Clock) -> None:
    mem.add("Anna is the release manager", scope="global")
    clock.forward(days=20)
    mem.add("Tom took over from Anna as release manager", scope="global")
    hits = mem.search("Who is the release manager?")
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    outdated = {hit.text: hit.note for hit in hits}
    assert "Tom took over" in outdated["Anna is the release manager"]


def test_an_injection_puts_the_outdated_memory_after_what_replaced_it(mem: Engram, clock: Clock) -> None:
    mem.add("Releases go through Anna, the release manager", scope="global")
    clock.forward(days=2)
    mem.add("Releases go through Tom now, he is the release manager", scope="global")
    text = mem.inject("Ask the release manager for the next release", scope="global").text
    assert text.index("Releases go through Tom") < text.index("Releases go through Anna")
    assert "may be replaced by" in text


def decisions(mem: Engram, clock: Clock) -> None:
    clock.forward(days=10)
    mem.add("We decided to use Postgres for the billing service", conflict_key="billing-db", scope="global")
    clock.forward(days=90)
    mem.add("We dropped Postgres for billing, MySQL it is", conflict_key="billing-db", scope="global")
    clock.forward(days=60)


def test_a_window_finds_what_was_decided_then_though_it_was_superseded_since(mem: Engram, clock: Clock) -> None:
    decisions(mem, clock)
    then = mem.list(status="superseded")[0].created
    assert then is not None
    answer = mem.recall(f"What did we decide in {then:%B} {then.year}?")
    assert texts(answer) == ["We decided to use Postgres for the billing service"]
    assert "MySQL it is" in answer.hits[0].note


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When did we decide to use Postgres?", "We decided to use Postgres for the billing service"),
        ("When did we drop Postgres?", "We dropped Postgres for billing, MySQL it is"),
    ],
)
def test_when_it_was_decided_is_the_decision_and_not_its_reversal(
    mem: Engram, clock: Clock, question: str, answer: str
) -> None:
    decisions(mem, clock)
    assert texts(mem.recall(question))[0] == answer


def test_what_held_in_a_window_is_known_though_nothing_was_superseded(mem: Engram, clock: Clock) -> None:
    anna = mem.add("Anna is the release manager", scope="global")
    clock.forward(days=100)
    mem.add("Tom took over from Anna as release manager", scope="global")
    clock.forward(days=100)
    assert anna.created is not None
    then = anna.created.replace(day=1, month=anna.created.month % 12 + 1)
    early = mem.recall(f"Who was the release manager in {then:%B} {then.year}?")
    assert texts(early) == ["Anna is the release manager"]
    assert "Tom took over" in early.hits[0].note
    assert mem.get(anna.id).valid_until is None
    late = mem.recall(f"Who was the release manager in {clock():%B} {clock().year}?")
    assert texts(late)[0] == "Tom took over from Anna as release manager"


def test_when_it_changed_is_the_change_and_not_how_it_was(mem: Engram, clock: Clock) -> None:
    mem.add("Our bank for the company account is Novo Banco", scope="global")
    clock.forward(days=60)
    changed = mem.add("We switched from Novo Banco to Qonto for the company account", scope="global")
    clock.forward(days=60)
    assert mem.recall("When did we change the bank of the company account?").hits[0].id == changed.id


def test_a_past_time_in_which_nothing_happened_is_answered_with_what_held(mem: Engram, clock: Clock) -> None:
    mem.add("We charge 78 euros an hour", scope="global")
    clock.forward(days=200)
    mem.add("From now on we charge 92 euros an hour", scope="global")
    clock.forward(days=30)
    answer = mem.recall("What did we charge per hour in May 2026?")
    assert texts(answer)[0] == "We charge 78 euros an hour"


def test_statements_of_one_document_stand_side_by_side() -> None:
    first = Memory("ENG-2026-0101-001", "The cache keeps pages for 15 minutes", source="document:a.md")
    second = first.replace(id="ENG-2026-0101-002", statement="The cache now keeps pages for 45 minutes")
    assert not replacements_among([first, second], "How long does the cache keep pages?")


def test_what_was_decided_about_something_is_the_decision_that_stands(mem: Engram, clock: Clock) -> None:
    decisions(mem, clock)
    answer = mem.recall("What did we decide about the billing service?")
    assert texts(answer)[0] == "We dropped Postgres for billing, MySQL it is"


@pytest.mark.parametrize("key", ["lead", ""])
@pytest.mark.parametrize(
    "question",
    [
        "Who is the team lead?",
        "What did we decide about the team lead?",
        "Who was the team lead before?",
        "How has the team lead changed over time?",
        "When did the team lead change?",
    ],
)
@pytest.mark.parametrize(
    ("older", "newer", "asked"),
    [
        ({"tags": ["x"]}, {"tags": ["y"]}, {"tags": ["X"]}),
        ({"type": "preference"}, {"type": "decision"}, {"types": ["preference"]}),
        ({"metadata": {"p": 1}}, {"metadata": {"p": 2}}, {"metadata": {"p": 1}}),
        ({"domain": "a/c"}, {"domain": "ab"}, {"domain": "a"}),
    ],
)
def test_what_fails_a_filter_of_the_caller_is_never_added(
    mem: Engram, clock: Clock, key: str, question: str, older: Any, newer: Any, asked: Any
) -> None:
    mem.add("The team lead is Anna", conflict_key=key, **older)
    clock.forward(days=1)
    after = mem.add("The team lead is Boris now", conflict_key=key, **newer)
    answer = mem.recall(question, **asked)
    assert after.id not in [hit.id for hit in answer.hits]
    assert not any("Boris" in hit.note for hit in answer.hits)
    assert texts(mem.recall("Who is the team lead?"))[0] == after.statement


def test_many_superseded_versions_leave_room_for_what_holds(mem: Engram, clock: Clock) -> None:
    for number in range(40):
        mem.add(f"The payment service was owned by team {number}", conflict_key="owner")
        clock.forward(hours=1)
    held = [
        "The payment service is deployed to Frankfurt",
        "The payment service runs on Kubernetes",
        "The payment service logs go to Loki",
    ]
    for statement in held:
        mem.add(statement)
    found = texts(mem.recall("What do we know about the payment service?"))
    assert {*held, "The payment service was owned by team 39"} <= set(found)


def test_a_filter_of_the_caller_holds_for_what_a_waiting_statement_contradicts(mem: Engram, clock: Clock) -> None:
    active = mem.learn("The API listens on port 8080", tags=["x"], scope="global").memory
    clock.forward(days=1)
    waiting = mem.learn("The API does not listen on port 8080", tags=["y"], scope="global")
    assert waiting.outcome.name == "CONTRADICTION"
    assert active is not None
    found = mem.recall("Does the API listen on port 8080?", tags=["y"]).hits
    assert active.id not in [hit.id for hit in found]


def test_many_superseded_happenings_leave_room_for_others(mem: Engram, clock: Clock) -> None:
    other = "We looked at the payment service once more with the auditors from Bonn and found nothing"
    mem.add(other)
    for number in range(40):
        mem.add(f"We deployed the payment service, version {number}", conflict_key="deployment")
        clock.forward(hours=1)
    found = texts(mem.recall("What did we do with the payment service?", min_relevance=0))
    assert found == ["We deployed the payment service, version 39", other]


UNRELATED = [
    ("The payment service is deployed to Frankfurt", "The payment service is owned by Mara", "Where is the payment service deployed?"),
    ("The CI runs on GitHub Actions", "The CI takes nine minutes", "Where does the CI run?"),
]  # fmt: skip


@pytest.mark.parametrize(("older", "newer", "question"), UNRELATED)
def test_a_newer_fact_about_something_else_stays_behind(
    mem: Engram, clock: Clock, older: str, newer: str, question: str
) -> None:
    asked = mem.add(older)
    clock.forward(days=2)
    mem.add(newer)
    found = mem.recall(question).hits[0]
    assert (found.id, found.note) == (asked.id, "")


def test_what_waits_comes_first_in_whatever_words_where_it_contradicts_the_answer(mem: Engram, clock: Clock) -> None:
    mem.remember("My manager is Karen", scope="global")
    clock.forward(days=20)
    waiting = mem.remember("Karen has left, I report to Marcus", scope="global")
    assert waiting.outcome.name in ("CONTRADICTION", "SUPERSEDED")
    answer = mem.recall("Who is my manager?")
    assert texts(answer)[0] == "Karen has left, I report to Marcus"


@pytest.mark.parametrize(("change", "end"), [(0.4, None), (0.6, 2)])
def test_a_chain_takes_only_likely_steps(monkeypatch: pytest.MonkeyPatch, change: float, end: int | None) -> None:
    def likely(question: str, pairs: Sequence[tuple[Claim, Claim]], best: float) -> list[float]:
        steps = set(pairwise(memory.statement for memory in chain))
        return [change if (older.text, newer.text) in steps else 0.0 for older, newer in pairs]

    monkeypatch.setattr("engram.recall.freshness.succession_probabilities", likely)
    chain = [
        Memory(f"ENG-2026-010{n}-001", f"The office is in {town}", created=on(2026, 1, n))
        for n, town in enumerate(("Bonn", "Kiel", "Ulm"), start=1)
    ]
    assert replacements_among(chain, "Where is the office?").newest(chain[0].id) == (chain[end] if end else None)


def test_when_something_changed_is_known_while_the_change_waits(mem: Engram, clock: Clock) -> None:
    mem.learn("The database is MySQL 8", scope="global")
    clock.forward(days=20)
    waiting = mem.learn("We switched from MySQL to Postgres", scope="global")
    assert waiting.outcome.name == "CONTRADICTION"
    found = mem.recall("When did we switch to Postgres?").hits
    assert [hit.text for hit in found][:1] == ["We switched from MySQL to Postgres"]
    assert "waits for review" in found[0].note


SAID = [
    ("Our locksmith is called Bertil.", "A woman named Ottoline does our locks these days.", "Who is our locksmith?"),
    ("We rent the kiln from Farrow & Pym.", "Farrow & Pym closed down, so we rent the kiln from Dunmore now.", "Who do we rent the kiln from?"),
]  # fmt: skip


@pytest.mark.parametrize(("older", "newer", "question"), SAID)
def test_of_what_was_said_in_sessions_the_latest_comes_first(
    mem: Engram, clock: Clock, older: str, newer: str, question: str
) -> None:
    for text in (older, newer):
        mem.observe("talk", "user", text)
        clock.forward(days=30)
    answer = mem.recall(question)
    assert texts(answer)[0] == newer
    assert newer[:20] in answer.hits[1].note


def test_the_question_tells_which_of_two_changes_is_meant() -> None:
    home = Memory("ENG-2026-0101-001", "Greta has her studio in Malmö.", created=on(2026, 1, 1))
    moved = Memory("ENG-2026-0201-001", "Greta moved her studio to Lund.", created=on(2026, 2, 1))
    other = Memory("ENG-2026-0301-001", "Greta switched to oil paint.", created=on(2026, 3, 1))
    hits = [Hit(memory.id, "memory", 5.0, memory.statement, memory, relevance=relevance)
            for memory, relevance in ((home, 0.6), (moved, 0.6), (other, 0.1))]  # fmt: skip
    found = replacements_among([home, moved, other], "Where is Greta's studio?", hits)
    assert (found.newest(home.id), found.newest(moved.id)) == (moved, None)


@pytest.mark.parametrize(
    ("rule", "other"),
    [
        ("The table saw has a riving knife", "The table saw is switched off before changing the blade"),
        ("Never deploy on Fridays", "Deployments need approval by Dana"),
        ("Oak comes from Breuer", "Oak boards are dried for six weeks"),
    ],
)
def test_of_two_rules_that_complement_each_other_none_is_said_to_be_replaced(
    mem: Engram, clock: Clock, rule: str, other: str
) -> None:
    mem.add(rule, scope="global")
    clock.forward(days=20)
    mem.add(other, scope="global")
    for text in (mem.inject(f"work on: {rule}").text, mem.recall(rule).text):
        assert "may be replaced" not in text


def test_a_plan_does_not_replace_what_is_current(mem: Engram, clock: Clock) -> None:
    current = mem.learn("Vantor Logistics has its head office in Malmö.", scope="global", source="human").memory
    clock.forward(days=1)
    plan = mem.learn("Vantor Logistics will move its head office to Hamburg.", scope="global", source="human")
    assert current is not None and mem.get(current.id).status == "active"
    assert plan.memory is not None and plan.memory.status == "active"
    assert texts(mem.recall("Where is the head office of Vantor Logistics?")) == [current.statement]
    assert texts(mem.recall("Where will Vantor Logistics move its head office?")) == [plan.memory.statement]
