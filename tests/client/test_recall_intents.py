"""What a question asks for decides where it is answered from: the hits are looked at, not the labels."""

from datetime import UTC, datetime

import pytest

from engram import Engram
from engram.recall.recaller import Recall
from tests.client.conftest import Clock


def on(year: int, month: int, day: int) -> datetime:
    return datetime(year, month, day, 12, tzinfo=UTC)


def homes(mem: Engram) -> dict[str, str]:
    """Three homes one after the other, and other things that are so."""
    said = {}
    for town, since in (("Lisbon", on(2022, 1, 1)), ("Porto", on(2024, 5, 1)), ("Faro", on(2025, 9, 1))):
        said[town] = mem.add(f"I live in {town}", valid_from=since, conflict_key="user:home", scope="global").id
    said["cat"] = mem.add("My cat is called Miso", valid_from=on(2020, 1, 1), scope="global").id
    return said


def about(answer: Recall, word: str) -> list[str]:
    """The hits that say a word, in their order."""
    return [hit.text for hit in answer.hits if word in hit.text]


def test_what_holds_is_the_head_alone(mem: Engram) -> None:
    homes(mem)
    answer = mem.recall("Where do I live?")
    assert about(answer, "live") == ["I live in Faro"]
    assert answer.hits[0].text == "I live in Faro"


def test_what_held_is_what_was_superseded(mem: Engram) -> None:
    said = homes(mem)
    answer = mem.recall("Where did I live before?")
    assert {hit.id for hit in answer.hits} == {said["Lisbon"], said["Porto"]}
    assert all(hit.note.startswith("superseded by ENG-") for hit in answer.hits)
    assert "superseded by ENG-" in answer.text


@pytest.mark.parametrize(
    ("question", "town"),
    [
        ("Where did I live in March 2023?", "Lisbon"),
        ("Where did I live in December 2024?", "Porto"),
        ("Where did I live last month?", "Faro"),
    ],
)
def test_a_time_is_answered_by_what_was_true_then(mem: Engram, question: str, town: str) -> None:
    homes(mem)
    answer = mem.recall(question)
    assert about(answer, "live") == [f"I live in {town}"]
    assert answer.hits[0].text == f"I live in {town}"
    assert answer.window is not None


def test_a_time_of_which_nothing_is_known_is_not_answered_by_something_else(mem: Engram) -> None:
    homes(mem)
    answer = mem.recall("Where did I live in June 2021?")
    assert about(answer, "Lisbon") == []
    assert answer.hits[0].text != "My cat is called Miso"
    assert any("that time" in warning for warning in answer.warnings)


def test_what_came_to_its_end_by_itself_is_the_past_too(mem: Engram) -> None:
    mem.add("My dentist is Dr. Osei", valid_from=on(2020, 1, 1), valid_until=on(2024, 1, 1))
    answer = mem.recall("Who was my dentist before?")
    assert [hit.text for hit in answer.hits] == ["My dentist is Dr. Osei"]
    assert mem.recall("Who is my dentist?").hits == []


def test_before_an_event_that_is_remembered(mem: Engram) -> None:
    homes(mem)
    mem.add("Porto has good museums", occurred_at=on(2019, 1, 1))
    mem.add("I moved to Porto", occurred_at=on(2024, 5, 1))
    answer = mem.recall("Where did I live before I moved to Porto?")
    assert about(answer, "live") == ["I live in Lisbon"]
    assert answer.window is not None
    assert (answer.window.since, answer.window.until) == (None, on(2024, 5, 1))


def test_before_an_event_that_only_the_ledger_tells_of(mem: Engram) -> None:
    homes(mem)
    mem.observe("chat", "user", "The movers came and we moved house today", at=on(2025, 9, 1))
    answer = mem.recall("Where did I live before we moved house?")
    assert about(answer, "live") == ["I live in Porto"]


def test_before_an_event_nobody_knows_of(mem: Engram) -> None:
    homes(mem)
    answer = mem.recall("Where did I live before the earthquake?")
    assert any("not known" in warning for warning in answer.warnings)
    assert about(answer, "live")


def spoken(mem: Engram, clock: Clock) -> None:
    mem.observe("chat", "user", "The invoice of the plumber is wrong")
    clock.forward(days=10)
    mem.observe("chat", "user", "The invoice of the electrician is right")
    clock.forward(days=3)
    mem.add("Invoices are kept in the blue folder", scope="global")


def test_what_happened_is_answered_from_the_ledger(mem: Engram, clock: Clock) -> None:
    spoken(mem, clock)
    answer = mem.recall("What did I say about the invoice?")
    assert {hit.kind for hit in answer.hits} == {"event"}
    assert len(answer.hits) == 2


def test_a_window_over_the_ledger_is_strict(mem: Engram, clock: Clock) -> None:
    spoken(mem, clock)  # the plumber's on Sunday the 1st, the electrician's on Wednesday the 11th, asked on the 14th
    said = mem.recall("What did I say about the invoice three days ago?")
    assert [hit.text for hit in said.hits] == ["The invoice of the electrician is right"]
    quiet = mem.recall("What did I say about the invoice yesterday?")
    assert [hit.text for hit in quiet.hits if hit.kind == "event"] == []


def test_the_date_of_the_question_moves_the_window(mem: Engram, clock: Clock) -> None:
    spoken(mem, clock)
    for asked in ("2026-03-02", on(2026, 3, 2)):
        answer = mem.recall("What did I say about the invoice yesterday?", question_date=asked)
        assert [hit.text for hit in answer.hits] == ["The invoice of the plumber is wrong"]


def test_without_a_ledger_what_is_remembered_answers_and_says_so(mem: Engram) -> None:
    mem.add("The roof was repaired by Ana", occurred_at=on(2026, 2, 20))
    answer = mem.recall("Who repaired the roof?")
    assert [hit.text for hit in answer.hits] == ["The roof was repaired by Ana"]
    assert any("session log" in warning for warning in answer.warnings) == (answer.intent == "event")
    assert mem.recall("What happened with the roof?").warnings


def test_types_that_were_asked_for_are_not_given_up(mem: Engram, clock: Clock) -> None:
    spoken(mem, clock)
    kept = mem.add("We decided to pay every invoice at once", type="decision", scope="global")
    answer = mem.recall("What did I say about the invoice?", types=["decision"])
    assert [hit.id for hit in answer.hits] == [kept.id]


def test_the_whole_way_of_a_fact_comes_oldest_first(mem: Engram) -> None:
    homes(mem)
    answer = mem.recall("How has where I live changed over time?")
    assert [hit.text for hit in answer.hits] == ["I live in Lisbon", "I live in Porto", "I live in Faro"]
    assert [hit.note for hit in answer.hits] == ["superseded", "superseded", ""]
    within = mem.recall("How has where I live changed since 2025?")
    assert [hit.text for hit in within.hits] == ["I live in Porto", "I live in Faro"]


def test_filters_that_were_given_stand(mem: Engram, clock: Clock) -> None:
    said = homes(mem)
    spoken(mem, clock)
    assert {hit.id for hit in mem.recall("Where do I live?", status="superseded").hits} == {
        said["Lisbon"],
        said["Porto"],
    }
    assert about(mem.recall("Where did I live before?", as_of="2023-01-01"), "live") == ["I live in Lisbon"]
    invoice = mem.recall("What did I say about the invoice?", kinds=["memory"], min_relevance=0.02)
    assert {hit.kind for hit in invoice.hits} == {"memory"}
    assert mem.recall("Where do I live?", since="2030-01-01").hits == []


def test_an_answer_keeps_to_its_scope(mem: Engram, clock: Clock) -> None:
    mem.add("The api is deployed on Mondays", scope="project:acme")
    mem.add("The api is deployed on Fridays", scope="project:rival")
    for question in ("When is the api deployed?", "How has the day the api is deployed changed over time?"):
        answer = mem.recall(question, scope="project:acme")
        assert [hit.text for hit in answer.hits] == ["The api is deployed on Mondays"]
    task = mem.start_task("Deploy", scope="project:rival").id
    mem.record_event(task, "user", "I deployed the api with Ansible")
    assert "Ansible" not in mem.recall("What did I say about Ansible?", scope="project:acme").text
    assert "Ansible" in mem.recall("What did I say about Ansible?", scope="project:rival").text


@pytest.mark.parametrize(
    "question",
    [
        "Where do I live?",
        "Where did I live before?",
        "What did I say last week?",
        "How has my diet changed?",
        "",
        "???",
    ],
)
def test_nothing_known_is_an_empty_answer(mem: Engram, question: str) -> None:
    answer = mem.recall(question)
    assert (list(answer.hits), answer.text) == ([], "Nothing is known about this.")


def test_critical_facts_are_looked_up_and_not_searched_for(mem: Engram) -> None:
    mem.add("I drink coffee", scope="global")
    allergy = mem.add("I am allergic to penicillin", scope="global", critical_slot="allergy")
    other = mem.add("The alarm code is kept by Ana", scope="project:acme", critical_slot="alarm", type="decision")
    assert [m.id for m in mem.recall_critical(scope="project:acme")] == [other.id, allergy.id]
    assert [m.id for m in mem.recall_critical(scope="project:rival")] == [allergy.id]
    assert [m.id for m in mem.recall_critical(scope="project:acme", types="decision")] == [other.id]
    assert len(mem.recall_critical(scope="project:acme", limit=1)) == 1
    newer = mem.revise(allergy.id, statement="I am allergic to penicillin and to nuts")
    assert [m.id for m in mem.recall_critical(scope="project:rival")] == [newer.id]


@pytest.mark.parametrize(
    "question",
    ["What happened yesterday?", "What was said yesterday?", "Summarize yesterday.", "What went on yesterday?"],
)
def test_a_question_for_everything_of_a_time_is_answered_with_all_of_it(mem: Engram, question: str) -> None:
    mem.add("The user lives in Lisbon")
    for at, text in (("13", "I met Priya"), ("14", "I ran the load tests"), ("14", "Then the build broke")):
        mem.observe("standup", "user", text, at=f"2026-04-{at}T09:00:00+00:00")
    found = mem.recall(question, question_date=datetime(2026, 4, 15, 12, tzinfo=UTC))
    assert [hit.text for hit in found.hits] == ["I ran the load tests", "Then the build broke"]
    assert found.warnings == ()
