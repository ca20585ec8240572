"""What a question asks for, of which time, and what to search for."""

import time
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engram.recall.question import INTENTS, understand
from tests.recall.questions import Expected, every_question

AT = datetime(2024, 6, 12, 15, 30, tzinfo=ZoneInfo("Europe/Berlin"))
KEPT = 1405
"""How many rows the tables hold."""


def miss(expected: Expected) -> str:
    """What was misread of a question; empty where nothing was."""
    read = understand(expected.text, expected.at)
    wrong = []
    if read.intent != expected.intent:
        wrong.append(f"intent {read.intent} ({read.reason}), not {expected.intent}")
    if (read.window, read.anchor, read.relation) != (expected.window, expected.anchor, expected.relation):
        wrong.append(
            f"{read.phrase!r} is {read.window} {read.relation} {read.anchor}, not {expected.window} {expected.anchor}"
        )
    return f"{expected.text}: {'; '.join(wrong)}" if wrong else ""


def test_every_kept_question_is_understood() -> None:
    asked = every_question()
    misses = [missed for row in asked if (missed := miss(row))]
    assert len(asked) == KEPT
    assert not misses, "\n".join(misses)


def test_no_question_is_kept_twice() -> None:
    asked = [(row.text.lower(), row.at) for row in every_question()]
    assert len(asked) == len(set(asked))


def test_every_intent_is_asked_for_often_enough_to_count() -> None:
    asked = [row.intent for row in every_question()]
    assert all(asked.count(intent) >= 250 for intent in INTENTS)


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("What did I say yesterday about the release?", "What did I say about the release?"),
        ("Last week, what did Anna decide?", "what did Anna decide?"),
        ("What did we ship in March?", "What did we ship?"),
        ("Where did I live before I moved?", "Where did I live?"),
        ("What is my allergy?", "What is my allergy?"),
        ("yesterday", "yesterday"),
    ],
)
def test_the_subject_is_the_question_without_its_time(text: str, subject: str) -> None:
    assert understand(text, AT).subject == subject


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("How has my target changed over time?", "over time"),
        ("What was my previous number?", "previous"),
        ("What did I promise Anna?", "did promise"),
        ("What is my allergy?", "nothing speaks of another time"),
    ],
)
def test_the_reason_names_the_words_that_decided(text: str, reason: str) -> None:
    assert understand(text, AT).reason == reason


@pytest.mark.parametrize(
    ("asked", "intent"),
    [
        ("What is my target?", "current"),
        ("What was my target last week?", "historical"),
        ("What did I decide last week?", "event"),
        ("How did my target change last week?", "lineage"),
    ],
)
def test_the_verb_decides_and_not_the_window(asked: str, intent: str) -> None:
    assert understand(asked, AT).intent == intent


def test_politeness_capitals_and_a_missing_mark_change_nothing() -> None:
    for text in (
        "Could you please tell me what I promised Anna",
        "WHAT DID I PROMISE ANNA",
        "hey, what did I promise Anna?",
    ):
        assert understand(text, AT).intent == "event"


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_has_a_reading(text: str) -> None:
    read = understand(text, AT)
    assert read.intent in INTENTS
    assert read.phrase in text
    assert read.reason


@pytest.mark.parametrize(
    "piece",
    [
        "could you ",
        "please ",
        "what ",
        "did ",
        "used to ",
        "history ",
        "was, ",
        "x",
        "all my old ",
        "different ",
        "old than ",
    ],
)
def test_a_hundred_thousand_characters_are_read_at_once(piece: str) -> None:
    text = (piece * 100_000)[:100_000]
    started = time.process_time()
    understand(text, AT)
    assert time.process_time() - started < 2.0


def test_the_question_behind_a_long_document_is_the_one_that_is_read() -> None:
    read = understand("The build was green. " * 2000 + "What did I promise Anna yesterday?", AT)
    assert (read.intent, read.phrase) == ("event", "yesterday")


@pytest.mark.parametrize(
    ("text", "intent"),
    [
        ("Has my dentist appointment been moved?", "lineage"),
        ("How did the plan change?", "lineage"),
        ("everything that changed about my job", "lineage"),
        ("How many times have I moved?", "lineage"),
        ("Has my rent gone up?", "lineage"),
        ("What was my first home?", "historical"),
        ("Have I ever lived in Berlin?", "historical"),
        ("What did the contract say before the amendment?", "historical"),
        ("Where were the logs kept?", "historical"),
        ("What did I usually eat in college?", "historical"),
        ("Have I ever been to Berlin?", "event"),
        ("When did the deadline change?", "event"),
        ("Who moved the meeting?", "event"),
        ("Have the tests been run?", "event"),
        ("All the changes you made to the file", "event"),
        ("How long have I been taking statins?", "current"),
        ("Who builds the release?", "current"),
        ("Any classes on Thursday?", "current"),
        ("Any errors on Thursday?", "event"),
        ("Which of my accounts still use the old password?", "current"),
        ("What was the test coverage target in March?", "historical"),
        ("What was the test result in March?", "event"),
        ("What did we have on file as of 3 March?", "historical"),
        ("Which bus did I use to take?", "historical"),
        ("Which command did you use to fix the build?", "event"),
        ("Which side did we park on before the rule changed?", "historical"),
        ("The old supplier, what did they charge?", "historical"),
        ("The last thing I asked you to book, what was it?", "event"),
        ("What did you do before the plan changed?", "event"),
        ("How's the scope shifted?", "lineage"),
        ("How did my salary go from 50k to 70k?", "lineage"),
        ("How did we go from Oslo to Bergen?", "event"),
        ("What was my rent then and what is it now?", "lineage"),
        ("How does my weight compare to January?", "lineage"),
        ("How does plan A compare to plan B?", "current"),
        ("What's different about the budget since May?", "lineage"),
        ("Which different ports do we use?", "current"),
        ("What stages has the offer gone through?", "lineage"),
        ("Every price we've ever listed the flat at", "lineage"),
        ("All the names we've discussed", "event"),
        ("Who ran design after the reorg?", "historical"),
        ("Who ran the platform team last week?", "historical"),
        ("Who ran the marathon in May?", "event"),
        ("Who ran the design review in May?", "event"),
        ("What did the platform team run in May?", "event"),
        ("Who held the role of CTO in 2023?", "historical"),
        ("Who held the meeting in March?", "event"),
        ("Which office did I share with Tom?", "historical"),
        ("What did Tom share yesterday?", "event"),
        ("What did the plumber charge last year?", "historical"),
        ("What did the plumber charge me last year?", "event"),
        ("Who led the standup yesterday?", "event"),
        ("Which port did the database use yesterday?", "historical"),
        ("Which tools did the agent use yesterday?", "event"),
        ("Which pills did she take yesterday?", "event"),
        ("Which medication did she take in 2023?", "historical"),
        ("Which invoices have to be paid?", "current"),
        ("Which editor have I been using since March?", "current"),
        ("What have you been working on lately?", "event"),
        ("Which plan has she been on since May?", "current"),
        ("Which plans has she been on since May?", "lineage"),
        ("How many desks did the office have on May 5?", "historical"),
        ("How many meetings did I have on May 5?", "event"),
        ("How long did I live in Berlin?", "historical"),
        ("How long did the migration take?", "event"),
        ("What was in the email from HR?", "event"),
        ("What was the letter about?", "event"),
        ("What was my email in 2020?", "historical"),
        ("What are the results of yesterday's test run?", "event"),
        ("Is the new lease different from the old one?", "lineage"),
        ("Is the rent higher than before?", "lineage"),
        ("What's the difference between the first and the second draft?", "lineage"),
        ("What is the difference between plan A and plan B?", "current"),
        ("How did we get from port 80 to port 81?", "lineage"),
        ("What changes have been made to clause 12?", "lineage"),
        ("What changes have you made to clause 12?", "event"),
        ("List all price changes in 2023.", "lineage"),
        ("Which price changes did you announce?", "event"),
        ("What were all of my employers?", "lineage"),
        ("What were all the errors?", "event"),
        ("How did the port end up being 6432?", "lineage"),
        ("Which features were still missing on Friday?", "historical"),
        ("What was left to do on Friday?", "historical"),
        ("Where was the parcel left?", "event"),
        ("Who has had the keys since Monday?", "current"),
        ("Who was late on Monday?", "event"),
        ("How was her health in 2023?", "historical"),
        ("How was the trip in 2023?", "event"),
        ("How did we handle refunds last year?", "historical"),
        ("How did we handle the refund last year?", "event"),
        ("Am I supposed to sign anything?", "current"),
        ("Which set is Oliver in?", "current"),
        ("Which set of keys opens the cellar?", "current"),
        ("Anything lined up for next week?", "current"),
        ("Which florist let us down?", "event"),
        ("Who taught Leo to ride a bike?", "event"),
        ("Who taught maths in 2020?", "historical"),
        ("Who is it that reported the leak?", "event"),
        ("Can you dig up who complained?", "event"),
        ("A client called on Monday; what did she want?", "event"),
        ("It had another name in May. What was it?", "historical"),
        ("There was an outage on Sunday, wasn't there?", "event"),
        ("Any replies since Monday?", "event"),
        ("Any falls since admission?", "event"),
        ("How many seats did the terrace have on May 5?", "historical"),
        ("What was the flow set to on Tuesday?", "historical"),
        ("Under whose name was the domain registered in 2022?", "historical"),
        ("What was the status of the Kramer filing on May 5?", "historical"),
        ("Up to last month, who signed off on expenses?", "historical"),
        ("Did the old policy cover theft?", "historical"),
        ("What did the previous tenant leave behind?", "event"),
        ("How did the quote move in May?", "lineage"),
        ("How did we move in May?", "event"),
        ("How have the rules been relaxed?", "lineage"),
        ("How has the bug been fixed?", "event"),
        ("Did the queue get longer in May?", "lineage"),
        ("Has my cholesterol got any better?", "lineage"),
        ("Has Paul got a brother?", "current"),
        ("Through which hands has the chair passed?", "lineage"),
        ("What path did the rating take?", "lineage"),
        ("What path did we take?", "event"),
        ("Every past and present wording of the policy", "lineage"),
        ("Which cards have I carried, from the very first to the present one?", "lineage"),
        ("Who has held the keys, in order?", "lineage"),
        ("What did it cost then, what does it cost now?", "lineage"),
        ("Is my rent the same as in 2023?", "lineage"),
    ],
)
def test_the_grammar_of_the_verb_decides(text: str, intent: str) -> None:
    assert understand(text, AT).intent == intent


@pytest.mark.parametrize(
    ("text", "unread"),
    [
        ("What did I do on Feb 30?", ("Feb 30",)),
        ("Where was I on 9/11?", ("9/11",)),
        ("What did I buy between Feb 30 and March 5?", ("Feb 30",)),
        ("What did we do at Diwali last year?", ("Diwali",)),
        ("What was our revenue in FY23?", ("FY23",)),
        ("What did Ann say in Q3 FY23?", ("Q3 FY23",)),
        ("What was our revenue last fiscal year?", ("last fiscal year",)),
        ("What happened later that week?", ("that week",)),
        ("When does the fiscal year end?", ()),
        ("What did I do on Feb 28?", ()),
        ("Which rows are in 2000 files of version 3.11.12?", ()),
        ("May I march in?", ()),
    ],
)
def test_times_that_bound_nothing_are_named(text: str, unread: tuple[str, ...]) -> None:
    assert understand(text, AT).unread == unread


def test_no_time_is_too_far_away_to_be_read() -> None:
    for year in ("0", "0001", "1", "999", "1000", "9998", "9999", "10000", "99999"):
        for form in (
            "in {}",
            "on Feb 29, {}",
            "at Easter {}",
            "since December {}",
            "in the {}s",
            "{} years ago",
            "week 53 of {}",
        ):
            assert understand(f"What happened {form.format(year)}?", AT).intent == "event"
