"""Which hits a question gets: the right versions in the right order, the right happenings, and nothing that is not meant."""

from datetime import UTC, datetime

import pytest

from engram import Engram
from engram.recall.recaller import Recall
from tests.client.conftest import Clock

HOMES = ("Berlin", "Paris", "Madrid", "Oslo", "Rome", "Lima", "Tokyo")
CHATTER = ("The build failed again", "I ran the load tests", "Please remind me to call Anna", "We shipped the report")


def on(year: int, month: int, day: int, hour: int = 12) -> datetime:
    return datetime(year, month, day, hour, tzinfo=UTC)


def texts(answer: Recall) -> list[str]:
    return [hit.text for hit in answer.hits]


def towns(answer: Recall) -> list[str]:
    return [hit.text.split()[-1] for hit in answer.hits]


@pytest.fixture
def homes(mem: Engram) -> Engram:
    """A home a year from 2019 on, as the default policy understands them: no key is given by hand."""
    for year, town in enumerate(HOMES, 2019):
        mem.add(f"The user lives in {town}", valid_from=on(year, 1, 1))
    mem.add("The user has a cat called Miso", valid_from=on(2019, 1, 1))
    return mem


@pytest.fixture
def jobs(mem: Engram) -> Engram:
    mem.add("The user works at Siemens", valid_from=on(2020, 1, 1))
    mem.add("The user works at Google", valid_from=on(2024, 1, 1))
    mem.observe("chat", "user", "Please remind me to call Anna about the flat")
    mem.observe("chat", "assistant", "I will remind you to call Anna")
    return mem


# -- what was superseded


@pytest.mark.parametrize(
    "question",
    [
        "Where did I live before?",
        "Where did I live previously?",
        "What was my previous home?",
        "What was my last address?",
        "Where did I use to live?",
    ],
)
def test_what_was_superseded_comes_latest_first_and_is_cut_after_that(homes: Engram, question: str) -> None:
    assert towns(homes.recall(question)) == ["Lima", "Rome", "Oslo", "Madrid", "Paris", "Berlin"]
    assert towns(homes.recall(question, limit=1)) == ["Lima"]


def test_of_many_versions_the_limit_leaves_the_latest_of_the_past(mem: Engram) -> None:
    for day in range(1, 13):
        mem.add(f"The launch date is May {day}", valid_from=on(2026, 1, day))
    assert texts(mem.recall("What was the launch date before?", limit=1)) == ["The launch date is May 11"]
    assert texts(mem.recall("What was the original launch date?", limit=1)) == ["The launch date is May 1"]
    assert texts(mem.recall("What was the previous launch date?", limit=3)) == [
        f"The launch date is May {day}" for day in (11, 10, 9)
    ]


def test_a_timeline_that_is_cut_says_how_much_was_left_out(mem: Engram) -> None:
    for day in range(1, 13):
        mem.add(f"The launch date is May {day}", valid_from=on(2026, 1, day))
    cut = mem.recall("How has the launch date changed?", limit=5)
    assert [text.split()[-1] for text in texts(cut)] == ["8", "9", "10", "11", "12"]
    assert "7 more versions were cut by the limit of 5." in cut.warnings
    assert mem.recall("How has the launch date changed?", limit=12).warnings == ()


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Where did I live before Rome?", ["Oslo"]),
        ("Where did I live before I moved to Rome?", ["Oslo"]),
        ("Where did I live after Rome?", ["Lima", "Tokyo"]),
        ("Where did I live before 2022?", ["Madrid", "Paris", "Berlin"]),
        ("When did I live in Rome?", ["Rome"]),
        ("How long did I live in Rome?", ["Rome"]),
        ("When did I move to Lima?", ["Lima"]),
        ("Did I live in Rome in 2023?", ["Rome"]),
        ("Where did I live first?", ["Berlin", "Paris", "Madrid", "Oslo", "Rome", "Lima"]),
    ],
)
def test_the_version_that_is_named_or_told_by_its_neighbour(homes: Engram, question: str, expected: list[str]) -> None:
    assert towns(homes.recall(question)) == expected


def test_a_window_over_a_change_has_both_versions(mem: Engram) -> None:
    mem.add("The user lives in Berlin", valid_from=on(2025, 1, 5))
    mem.add("The user lives in Lisbon", valid_from=on(2025, 9, 10))
    assert towns(mem.recall("Where did I live in 2025?")) == ["Lisbon", "Berlin"]
    assert towns(mem.recall("Where did I live in October 2025?")) == ["Lisbon"]
    for question in ("As of March 2025, where do I live?", "Where did I live in March 2025?"):
        assert towns(mem.recall(question)) == ["Berlin"]


# -- facts named by what they are


@pytest.mark.parametrize(
    ("question", "employer"),
    [
        ("What was my previous employer?", "Siemens"),
        ("Who was my first employer?", "Siemens"),
        ("What was my last job?", "Siemens"),
        ("Who is my employer?", "Google"),
        ("Which company do I work for?", "Google"),
    ],
)
def test_a_question_names_a_fact_without_a_word_of_it(jobs: Engram, question: str, employer: str) -> None:
    found = jobs.recall(question, compose_answer=True)
    assert texts(found) == [f"The user works at {employer}"]
    assert f"The user works at {employer}" in found.answer
    assert found.warnings == ()


def test_where_one_lives_is_known_from_a_move(mem: Engram) -> None:
    mem.add("The user lives in Berlin", valid_from=on(2020, 1, 1))
    mem.add("The user moved to Lisbon", valid_from=on(2025, 1, 1))
    now = mem.recall("Where do I live?", compose_answer=True)
    assert texts(now) == ["The user moved to Lisbon"]
    assert "moved to Lisbon" in now.answer
    assert texts(mem.recall("What was my previous home?")) == ["The user lives in Berlin"]


def test_a_fact_that_is_named_is_found_however_much_resembles_the_question(mem: Engram) -> None:
    owners, wishes = ("Ana", "Ben", "Cleo", "Dan"), ("a lamp", "a repair", "more chairs", "better light", "a printer")
    mem.add_batch(
        [
            {"content": f"The {place} of {owner} {verb} {wish}"}
            for place in ("home", "address")
            for owner in owners
            for verb in ("needs", "has", "wants")
            for wish in wishes
        ]
    )
    mem.add("The user moved to Berlin", valid_from=on(2020, 1, 1))
    mem.add("The user moved to Lisbon", valid_from=on(2025, 1, 1))
    assert texts(mem.recall("What was my previous home?")) == ["The user moved to Berlin"]
    assert texts(mem.recall("What is my home?"))[0] == "The user moved to Lisbon"
    assert texts(mem.recall("When did my address change?")) == ["The user moved to Berlin", "The user moved to Lisbon"]


@pytest.mark.parametrize("question", ["Where does Anna live?", "Where did my sister live before?"])
def test_another_ones_fact_is_not_answered_with_the_users(homes: Engram, question: str) -> None:
    assert texts(homes.recall(question)) == []


def test_of_someone_nothing_is_known_of_nothing_is_told(jobs: Engram) -> None:
    found = jobs.recall("Tell me everything about Karen", compose_answer=True)
    assert (texts(found), found.answer) == ([], "")
    assert "No memory mentions “Karen”." in found.warnings


def test_an_answer_is_not_composed_of_what_is_only_possible(mem: Engram) -> None:
    mem.add("The user works at Google")
    found = mem.recall("Who is my dentist?", compose_answer=True)
    assert (found.answer, texts(found)) == ("", [])


# -- what happened


def test_a_when_is_answered_by_the_happening_and_not_by_what_was_superseded(mem: Engram) -> None:
    mem.add("The user lives in Berlin", valid_from=on(2024, 1, 1))
    mem.add("The user lives in Lisbon", valid_from=on(2025, 1, 1))
    mem.add("The user drove to Munich for a concert", occurred_at=on(2025, 5, 1))
    found = mem.recall("When did I drive to Munich?", compose_answer=True)
    assert texts(found) == ["The user drove to Munich for a concert"]
    assert "2025-05-01" in found.answer


def test_the_best_match_wins_be_it_a_memory_or_an_event(mem: Engram) -> None:
    mem.add("The user went to the dentist", occurred_at=on(2026, 2, 1))
    mem.add("The user works at Google", valid_from=on(2024, 1, 1))
    for said in CHATTER:
        mem.observe("chat", "user", said)
    assert texts(mem.recall("When did I go to the dentist?")) == ["The user went to the dentist"]
    assert texts(mem.recall("What did I ship?")) == ["We shipped the report"]
    assert texts(mem.recall("When did I work at Google?")) == ["The user works at Google"]


def test_what_took_place_did_so_whatever_came_after_it(mem: Engram) -> None:
    for year, town in ((2019, "Berlin"), (2021, "Oslo"), (2023, "Lisbon")):
        mem.add(f"The user moved to {town}", valid_from=on(year, 1, 1))
    for town in ("Berlin", "Oslo", "Lisbon"):
        assert texts(mem.recall(f"When did I move to {town}?")) == [f"The user moved to {town}"]


@pytest.fixture
def week(mem: Engram, clock: Clock) -> Engram:
    """The week before Saturday, March 14, at noon."""
    for said, at in (
        ("I repaired the bicycle", on(2026, 3, 11)),
        ("I deployed the api", on(2026, 3, 12, 9)),
        ("The pager went off", on(2026, 3, 12, 13)),
        ("Please book a table at Luigi's", on(2026, 3, 14, 9)),
    ):
        mem.observe("chat", "user", said, at=at)
    clock.now = on(2026, 3, 14)
    mem.add("The user lives in Lisbon")
    mem.add("The server went wrong after the update", occurred_at=on(2026, 3, 14, 10))
    return mem


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What did I do in the last 48 hours?", ["The pager", "Please book", "The server"]),
        ("What did I ask for today?", ["Please book"]),
        ("What happened after the deploy?", ["The pager", "Please book", "The server"]),
        ("What did I do on Wednesday?", ["I repaired"]),
        ("What went wrong last Tuesday?", []),
        ("What did I ask you yesterday?", []),
    ],
)
def test_all_of_a_time_is_told_and_nothing_of_another(week: Engram, question: str, expected: list[str]) -> None:
    found = week.recall(question)
    assert [" ".join(text.split()[:2]) for text in texts(found)] == expected
    assert bool(found.warnings) == (not expected)


def test_more_of_a_time_than_the_limit_is_said_to_be_left_out(week: Engram) -> None:
    found = week.recall("What happened this week?", limit=3)
    assert len(found.hits) == 3
    assert "2 more from that time were cut by the limit of 3." in found.warnings


# -- what changed


@pytest.fixture
def changes(mem: Engram, clock: Clock) -> Engram:
    """As things came to be known, up to March 14."""
    for at, said in (
        (on(2025, 6, 1), "The user works at Siemens"),
        (on(2026, 1, 5), "The launch date is May 1"),
        (on(2026, 2, 10), "The launch date is May 15"),
        (on(2026, 2, 20), "The user works at Google"),
        (on(2026, 2, 21), "The cat is called Miso"),
        (on(2026, 3, 12), "The launch date is June 1"),
    ):
        clock.now = at
        mem.add(said)
    mem.observe("chat", "user", "The weather changed a lot last month")
    clock.now = on(2026, 3, 14)
    return mem


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What changed last month?", ["May 1", "May 15", "Siemens", "Google"]),
        ("What has changed since February 15?", ["Siemens", "Google", "May 15", "June 1"]),
        ("What changed this year?", ["May 1", "May 15", "June 1", "Siemens", "Google"]),
        ("What changed this month about the launch?", ["May 15", "June 1"]),
        ("When did the launch date change?", ["May 1", "May 15", "June 1"]),
        ("What did we think the launch date was on March 10?", ["May 15"]),
        ("Did anything change last month?", ["May 1", "May 15", "Siemens", "Google"]),
        ("What changed in 2024?", []),
    ],
)
def test_what_changed_is_told_by_when_it_did(changes: Engram, question: str, expected: list[str]) -> None:
    told = [text.split(" is ")[-1].split(" at ")[-1] for text in texts(changes.recall(question))]
    assert told == expected


def test_when_something_changed_is_told_with_the_days(changes: Engram) -> None:
    found = changes.recall("When did the launch date change?", compose_answer=True)
    for told in (found.answer, found.text):
        assert "2026-01-05 to 2026-02-10" in told
        assert "since 2026-03-12" in told


def test_what_did_not_change_in_that_time_is_said_not_to_have(changes: Engram) -> None:
    found = changes.recall("How has the launch date changed in 2026-04?", question_date=on(2026, 5, 1))
    assert "It did not change in that time." in found.warnings
    assert "No known fact changed in that time." in changes.recall("What changed in 2024?").warnings


@pytest.mark.parametrize("question", ["Audit records shipped at midnight", "Load tests replay last November's traffic"])
def test_words_that_name_a_time_find_the_memory_that_says_them(mem: Engram, question: str) -> None:
    mem.add("Audit records are append only and shipped to cold storage at midnight")
    mem.add("Load tests replay last November's traffic against an isolated environment")
    found = mem.recall(question)
    assert [hit.text.split()[0] for hit in found.hits] == [question.split()[0]]
    assert found.warnings, "the answer says that the time was not taken as a window"


def test_a_time_that_cannot_be_placed_is_told_once_and_not_as_an_unknown_name(mem: Engram) -> None:
    mem.add("The kitchen wall is red")
    warnings = mem.recall("What happened on Feb 30?").warnings
    assert [warning for warning in warnings if "Feb" in warning] == [
        "“Feb 30” could not be read as a time; it was ignored"
    ]
