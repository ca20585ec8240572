"""What is kept stands alone: a sentence that refers to the one before is kept with it, or waits for review."""

from datetime import UTC, datetime

import pytest

from engram import Engram
from engram.capture.extraction import JudgedSentence, consider
from engram.capture.extraction.references import (
    MAX_JOINED_CHARS,
    can_explain,
    has_open_reference,
    is_verbless,
    join_pair,
)
from engram.capture.extraction.statement import needs_context, standalone
from tests.backends import Backend
from tests.capture.hearing import heard
from tests.tables import table

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)


def of_turn(content: str) -> list[JudgedSentence]:
    turns = [{"role": "user", "content": content}, {"role": "assistant", "content": "Okay."}]
    return consider(turns, at=AT)


@table(
    "said",
    [
        "It's moored in Hoorn",
        "they close on Mondays",
        "I weighed them twice",
        "the db lives there too",
        "that one needs pills",
        "the older one is called Miso",
        "that's at 9:20",
        "hers is in Utrecht",
    ],
)
def test_a_sentence_leans_on_what_it_does_not_name(said: str) -> None:
    assert has_open_reference(said)


@table(
    "said",
    [
        "Dom moved to Lisbon, I've known him since school",
        "I take dried figs and weigh them",
        "there is a spare key under the pot",
        "it takes an hour to heat the sauna",
        "staging has fake data, never restore a dump there",
        "I think that Anna works nights",
    ],
)
def test_a_sentence_that_names_what_it_refers_to_stands_alone(said: str) -> None:
    assert not has_open_reference(said)


@table("said", ["Thursday at four now", "43, wide", "in the blue bag"])
def test_a_time_a_place_or_a_number_alone_says_nothing(said: str) -> None:
    assert is_verbless(said)


@table(
    "said",
    ["Tuesday pairing is off", "the soil here's heavy clay", "all our handouts are metric only", "hate coriander"],
)
def test_what_has_a_verb_says_something(said: str) -> None:
    assert not is_verbless(said)


@table(
    ("before", "said"),
    [
        ("You are kind.", "She takes insulin."),  # said to the reader
        ("The user goes on Sundays.", "She takes insulin."),  # nobody is named
        ("Brother Ondrej drives a truck, from him there is little help.", "She takes insulin."),  # he is not she
        ("The roof on it is asbestos.", "It's a bungalow of 1950."),  # the other "it" is unnamed too
        ("A bottle of sherry then.", "It's for Anna."),  # nothing is asserted
    ],
)
def test_a_sentence_that_does_not_name_what_is_meant_explains_nothing(before: str, said: str) -> None:
    assert not can_explain(before, said)


def test_two_sentences_are_one_memory_only_while_it_is_short() -> None:
    assert join_pair("We bought a boat.", "It's moored in Hoorn.") == "We bought a boat; it's moored in Hoorn."
    assert not join_pair(f"We bought a boat {'x' * MAX_JOINED_CHARS}.", "It's moored in Hoorn.")


@table(
    ("before", "said", "statement"),
    [
        ("My brother Jonas got a new job.", "He's at Philips these days", "Jonas is at Philips these days."),
        ("Our landlord is called Piet.", "He hates noise", "Piet hates noise."),
        ("Elise is with us until May.", "She knows no Python yet", "Elise knows no Python yet."),
        ("She laughs when she is read Barbara Pym.", "She sang in a choir", "She sang in a choir."),
        ("Translate the note.", "She sang in a choir", "She sang in a choir."),
    ],
)
def test_a_name_is_a_persons_where_nobody_else_can_be_meant(before: str, said: str, statement: str) -> None:
    assert standalone(said, heard(before), AT, owner="person") == statement


def test_the_first_word_of_a_request_is_nobodys_name() -> None:
    said = standalone("Bram eats fish but no meat", heard("Suggest something for the grill."), AT, owner="person")
    assert said == "Bram eats fish but no meat."


@table(
    ("asked", "said", "statement"),
    [
        ("And your shoe size?", "43, wide", "The user's shoe size: 43, wide."),
        ("Which vet do you use?", "It's Thistle Vets in Brechin now", "The vet the user uses is Thistle Vets in Brechin now."),
        ("What is the port?", "it's 8443", "The port is 8443."),
    ],
)  # fmt: skip
def test_an_answer_is_joined_with_what_was_asked(asked: str, said: str, statement: str) -> None:
    assert standalone(said, heard(asked), AT, asked=asked) == statement
    assert not needs_context(said, heard(asked), asked=asked)


def test_a_question_that_names_nobody_does_not_explain_an_answer() -> None:
    asked = "Did anything else come of it?"
    assert needs_context("She has given up driving.", heard(asked), asked=asked)


def test_a_sentence_and_the_one_it_refers_to_are_kept_once_as_one() -> None:
    content = "I keep bees, seven hives. They stand behind the church in Rättvik."
    (both,) = [one for one in of_turn(content) if one.role == "user"]
    (fact,) = both.facts
    assert fact.statement == "The user keeps bees, seven hives; they stand behind the church in Rättvik."
    assert not fact.tentative
    assert content[slice(*fact.span)] == both.text == content


def test_what_is_sure_is_not_lost_in_what_waits_for_review() -> None:
    sure, waiting = of_turn("The house is Grade II listed, so I may not fit double glazing. It dates from 1784.")
    assert not sure.facts[0].tentative
    assert waiting.facts[0].tentative
    assert (waiting.facts[0].statement, "Grade II" in waiting.facts[0].context) == ("It dates from 1784.", True)


def test_what_a_rule_phrased_stays_a_memory_of_its_own() -> None:
    facts = [fact for one in of_turn("I work at Philips. They moved me to Eindhoven.") for fact in one.facts]
    assert [fact.statement for fact in facts] == ["The user works at Philips.", "They moved the user to Eindhoven."]
    assert (facts[1].tentative, facts[1].context) == (True, "I work at Philips.")


def test_what_replaces_a_fact_leaves_nothing_of_it_in_what_was_said_with_it() -> None:
    with Engram.open(ephemeral=True) as mem:
        mem.add_conversation("We use Postgres for orders. It runs on port 5433 in production.", "Okay.", scope="global")
        mem.add_conversation("We use MySQL for orders now.", "Okay.", scope="global")
        assert not [memory for memory in mem.list() if "Postgres" in memory.statement]


def test_a_title_is_no_name() -> None:
    facts = [
        fact for one in of_turn("Our vet is Dr. Sommer. She only works on Tuesdays and Fridays.") for fact in one.facts
    ]
    assert not any(fact.statement.startswith("Dr ") for fact in facts)


@pytest.mark.parametrize("request_", ["Draft a letter to the parish.", "Can you draft a letter to the parish?"])
def test_a_request_is_not_joined_and_what_refers_to_it_waits_with_its_context(request_: str) -> None:
    facts = [fact for one in of_turn(f"{request_} They always pay after ninety days.") for fact in one.facts]
    for fact in facts:
        assert fact.tentative
        assert fact.context == request_
    assert facts


def test_a_decision_names_the_words_of_both_sentences(backend: Backend) -> None:
    said = "Nobody in the choir may wear scent at a concert. It is on account of Mabel, who has severe asthma."
    (decision,) = backend.client().add_conversation(said, "Okay.", session="s", scope="global").decisions
    assert decision.fact.startswith("Nobody in the choir may wear scent at a concert; it is on account of Mabel")
    assert decision.said == said
