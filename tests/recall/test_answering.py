"""What is answered: the hits are looked at, and what is said of them."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from engram import Engram
from engram.recall.recaller import Recall
from tests.clock import Clock


@pytest.fixture
def mem(tmp_path: Path, clock: Clock) -> Iterator[Engram]:
    with Engram.open(tmp_path / "home", cache=tmp_path / "cache", directory=tmp_path, clock=clock) as opened:
        yield opened


def on(year: int, month: int, day: int, hour: int = 12) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


def texts(answer: Recall) -> list[str]:
    return [hit.text for hit in answer.hits]


def lived(mem: Engram) -> None:
    for town, since in (("Lisbon", on(2022, 1, 1)), ("Porto", on(2024, 5, 1)), ("Faro", on(2025, 9, 1))):
        mem.add(f"I live in {town}", valid_from=since, conflict_key="user:home", scope="global")


HOUSE = (
    "My landlord is Mr. Costa",
    "The wifi password is on the fridge",
    "My dentist is Dr. Silva",
    "I am allergic to penicillin",
    "The car is a blue Renault Clio",
    "I prefer tea over coffee",
    "The API listens on port 8080",
    "We deploy on Thursdays",
    "The trash is collected on Tuesdays",
    "My blood type is A positive",
    "The cat is called Miso",
    "The standup is at 9:30",
)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Who is my dentist?", "My dentist is Dr. Silva"),
        ("What is my blood type?", "My blood type is A positive"),
        ("When is the garbage picked up?", "The trash is collected on Tuesdays"),
        ("When do we deploy?", "We deploy on Thursdays"),
    ],
)
def test_what_is_not_about_the_question_does_not_fill_up_the_limit(mem: Engram, question: str, answer: str) -> None:
    for fact in HOUSE:
        mem.add(fact, scope="global")
    found = mem.recall(question, limit=10)
    assert texts(found) == [answer]
    assert found.hits.filtered
    assert all(left.reason.startswith("relevance 0.") for left in found.hits.filtered)


@pytest.mark.parametrize("question", ["Have I ever lived in Lisbon?", "Have I ever lived in Faro?"])
def test_whether_it_was_ever_so_is_answered_by_what_was_and_what_is(mem: Engram, question: str) -> None:
    lived(mem)
    found = mem.recall(question)
    assert found.intent == "historical"
    assert question.split()[-1].strip("?") in " ".join(texts(found))


def test_the_first_of_several_is_the_oldest_and_the_previous_the_latest_of_the_past(mem: Engram) -> None:
    lived(mem)
    assert texts(mem.recall("Where did I live first?"))[0] == "I live in Lisbon"
    assert texts(mem.recall("Where did I live previously?")) == ["I live in Porto", "I live in Lisbon"]


def test_before_a_move_of_the_same_day_is_the_home_before_it(mem: Engram) -> None:
    """The fact begins at midnight, the move is told at noon: what began that day came of the move."""
    mem.add("I live in Lisbon", valid_from=on(2022, 1, 1, 0), conflict_key="user:home", scope="global")
    mem.add("I live in Porto", valid_from=on(2024, 5, 1, 0), conflict_key="user:home", scope="global")
    mem.add("I moved to Porto with two suitcases", occurred_at=on(2024, 5, 1), scope="global")
    found = mem.recall("Where did I live before I moved to Porto?")
    assert texts(found)[0] == "I live in Lisbon"
    assert "I live in Porto" not in texts(found)


@pytest.mark.parametrize(
    "question",
    [
        "What was my meeting before I changed it?",
        "When was the meeting before it was moved?",
        "What was the meeting's time before they rescheduled it?",
    ],
)
def test_before_its_own_change_is_the_version_before_whatever_else_changed(mem: Engram, question: str) -> None:
    mem.add("The meeting is at nine", valid_from=on(2025, 1, 1), conflict_key="meeting", scope="global")
    mem.add("The meeting is at ten", valid_from=on(2025, 6, 1), conflict_key="meeting", scope="global")
    mem.add("I changed, moved and rescheduled my flight", occurred_at=on(2020, 1, 1), scope="global")
    found = mem.recall(question)
    assert (found.intent, texts(found)[0]) == ("historical", "The meeting is at nine")


def test_of_two_changes_of_one_day_the_last_is_what_the_event_brought(mem: Engram) -> None:
    for hour, pay in ((8, "forty"), (9, "fifty"), (11, "sixty")):
        mem.add(f"My salary is {pay}", valid_from=on(2025, 5, 1, hour), conflict_key="user:salary", scope="global")
    mem.add("I got promoted", occurred_at=on(2025, 5, 1, 10), scope="global")
    assert texts(mem.recall("What was my salary before I got promoted?"))[0] == "My salary is fifty"


@pytest.mark.parametrize("days", [13, 14, 15, 300])
def test_until_recently_is_what_was_superseded_however_long_ago(mem: Engram, clock: Clock, days: int) -> None:
    mem.add("I live in Porto", valid_from=on(2022, 1, 1), conflict_key="user:home", scope="global")
    mem.add("I live in Faro", conflict_key="user:home", scope="global")
    clock.forward(days=days)
    found = mem.recall("Where did I live until recently?")
    assert (found.intent, texts(found)) == ("historical", ["I live in Porto"])


def test_while_something_lasted_is_as_long_as_it_did(mem: Engram) -> None:
    lived(mem)
    mem.add("My bank is Millennium", valid_from=on(2022, 6, 1), conflict_key="user:bank", scope="global")
    mem.add("My bank is Revolut", valid_from=on(2025, 1, 1), conflict_key="user:bank", scope="global")
    found = mem.recall("What was my bank when I lived in Lisbon?")
    assert found.window is not None
    assert (found.window.since, found.window.until) == (on(2022, 1, 1), on(2024, 5, 1))
    assert texts(found)[0] == "My bank is Millennium"


def test_every_fact_that_changed_is_told_from_its_beginning(mem: Engram) -> None:
    for year, title, place in (
        (2022, "a tester", "Acme"),
        (2024, "an engineer", "Globex"),
        (2025, "a director", "Initech"),
    ):
        mem.add(f"My job title is {title}", valid_from=on(year, 1, 1), conflict_key="user:title", scope="global")
        mem.add(f"My job is at {place}", valid_from=on(year, 2, 1), conflict_key="user:employer", scope="global")
    mem.add("The cat is called Miso", scope="global")
    told = texts(mem.recall("everything that changed about my job"))
    titles = [f"My job title is {title}" for title in ("a tester", "an engineer", "a director")]
    places = [f"My job is at {place}" for place in ("Acme", "Globex", "Initech")]
    assert sorted(told) == sorted(titles + places)
    assert told in (titles + places, places + titles)
    assert len(mem.recall("everything that changed about my job", limit=4).hits) == 4


def test_one_fact_asked_about_is_not_joined_by_others(mem: Engram) -> None:
    lived(mem)
    for since, name in ((on(2023, 1, 1), "Miso"), (on(2024, 1, 1), "Nori")):
        mem.add(f"The cat is called {name}", valid_from=since, conflict_key="cat:name", scope="global")
    assert texts(mem.recall("How has where I live changed?")) == [
        "I live in Lisbon",
        "I live in Porto",
        "I live in Faro",
    ]


@pytest.mark.parametrize(
    ("question", "phrase"),
    [
        ("What did I do on Feb 30?", "Feb 30"),
        ("What happened on February 30, 2024?", "February 30, 2024"),
        ("What did I do on the 32nd of May?", "32nd of May"),
        ("What happened in December 9999?", "December 9999"),
        ("What happened 5000 years ago?", "5000 years ago"),
        ("What will happen in 10000 years?", "10000 years"),
        ("What did I say on 2024-13-45?", "2024-13-45"),
        ("What did I sign on 05/03/2024?", "05/03/2024"),
        ("What did we cook at Ramadan 2025?", "Ramadan 2025"),
        ("What did we ship last sprint?", "last sprint"),
        ("What was the target in Q5 2024?", "Q5 2024"),
    ],
)
def test_a_time_that_bounds_nothing_is_said_to(mem: Engram, question: str, phrase: str) -> None:
    mem.add("The target of the quarter is 40", scope="global")
    found = mem.recall(question)
    assert found.understood is not None
    assert (found.window, found.understood.unread) == (None, (phrase,))
    assert f"“{phrase}” could not be read as a time; it was ignored" in found.warnings


@pytest.mark.parametrize(
    "question", ["Where did my family live in 1850?", "What did I do at Easter?", "Who is at 10.0.3.17?"]
)
def test_a_time_that_was_understood_or_is_none_is_not_complained_of(mem: Engram, question: str) -> None:
    found = mem.recall(question)
    assert found.understood is not None
    assert found.understood.unread == ()
    assert not any("could not be read as a time" in warning for warning in found.warnings)


def test_what_no_memory_tells_of_is_answered_from_the_ledger(mem: Engram) -> None:
    mem.add("The standup is at 9:30", scope="global")
    mem.observe("chat", "user", "Our hamster is called Pixel and eats carrots")
    found = mem.recall("What is the hamster called?")
    assert (found.intent, texts(found)) == ("current", ["Our hamster is called Pixel and eats carrots"])
    assert "No matching memory; answered from the session log." in found.warnings


def test_something_of_another_time_is_better_than_something_else_of_this_one(mem: Engram, clock: Clock) -> None:
    mem.add("The release is built by Jenkins", scope="global")
    clock.forward(days=30)
    mem.add("The cat is called Miso", scope="global")
    found = mem.recall("Who builds the release since yesterday?")
    assert texts(found) == ["The release is built by Jenkins"]
    assert "Nothing was learned in that time; showing the current value." in found.warnings


def test_an_event_that_says_it_is_better_than_a_memory_that_only_resembles_it(mem: Engram) -> None:
    mem.add("The user works at Google", scope="global")
    mem.observe("chat", "user", "The client wants a discount of 10%")
    mem.observe("chat", "user", "I bought a new keyboard")
    found = mem.recall("What does the client want?")
    assert texts(found) == ["The client wants a discount of 10%"]
    assert "No matching memory; answered from the session log." in found.warnings


def test_what_is_not_meant_does_not_stand_beside_what_is(mem: Engram) -> None:
    for said in ("Priya asked for a status report", "I bought a new keyboard", "We met the client about pricing"):
        mem.observe("chat", "user", said)
    found = mem.recall("What did Priya ask for?")
    assert texts(found) == ["Priya asked for a status report"]
    assert all(left.reason.startswith("relevance 0.") for left in found.hits.filtered)


def test_statements_nobody_joined_tell_a_way_where_they_match_as_well(mem: Engram, clock: Clock) -> None:
    for pay in ("forty", "fifty"):
        mem.add(f"The budget of the garden club is {pay} euros", scope="global")
        clock.forward(days=30)
    mem.add("The garden club meets in the town hall", scope="global")
    assert texts(mem.recall("How has the budget of the garden club changed?")) == [
        "The budget of the garden club is forty euros",
        "The budget of the garden club is fifty euros",
    ]


def test_what_holds_asked_of_a_time_that_is_over_is_what_held_then(mem: Engram) -> None:
    lived(mem)
    assert texts(mem.recall("In March 2023, where do I live?")) == ["I live in Lisbon"]


def test_how_things_are_answers_for_any_time_and_what_happened_only_for_its_own(mem: Engram, clock: Clock) -> None:
    mem.add("The office fridge is cleaned by Marta", scope="global")
    mem.add("Marta painted the kitchen wall green", occurred_at=clock.now, scope="global")
    state = mem.recall("Who cleaned the office fridge last week?")
    assert texts(state) == ["The office fridge is cleaned by Marta"]
    assert "Nothing is known about that time; showing the current value." in state.warnings
    happening = mem.recall("Who painted the kitchen wall last week?")
    assert (texts(happening), happening.possible[0].text) == ([], "Marta painted the kitchen wall green")


def test_what_was_said_about_something_is_what_says_it(mem: Engram) -> None:
    mem.observe("chat", "user", "I deployed the api with Ansible")
    mem.observe("chat", "user", "The cat is called Miso")
    assert texts(mem.recall("What did I say about Ansible?")) == ["I deployed the api with Ansible"]


def test_how_it_goes_is_no_question_for_everything_of_a_day(mem: Engram) -> None:
    mem.add("The cat is called Miso", scope="global")
    found = mem.recall("hey, how's it going today?")
    assert (texts(found), found.text) == ([], "Nothing is known about this.")
