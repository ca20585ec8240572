"""A sentence becomes a memory that can be read alone."""

from datetime import UTC, datetime

from engram.capture.extraction.clauses import own_sentences
from engram.capture.extraction.statement import is_fragment, standalone
from tests.capture.hearing import heard
from tests.tables import table

AT = datetime(2026, 3, 4, 10, 0, tzinfo=UTC)
"""A Wednesday."""


def rewritten(said: str, owner: str = "user", asked: str = "", before: tuple[str, ...] = ()) -> str:
    return standalone(said, heard(*before), AT, owner=owner, asked=asked)


@table(
    ("said", "statement"),
    [
        ("im allergic to latex lol", "The user is allergic to latex."),
        ("ive got two guinea pigs now 🐹", "The user has got two guinea pigs now."),
        ("oh and um I keep the spare key under the blue pot", "The user keeps the spare key under the blue pot."),
        ("btw my sister drives the van, thanks", "The user's sister drives the van."),
        ("we dont use jenkins anymore tbh", "We don't use jenkins anymore."),
        ("Dervla hates anything wet, so can you leave the yoghurt out", "Dervla hates anything wet."),
        ("My dentist appointment is tomorrow", "The user's dentist appointment is on 2026-03-05."),
        ("not Wednesday but Thursday is my office day", "Not Wednesday but Thursday is the user's office day."),
        ("moved to Porto for good", "The user moved to Porto for good."),
    ],
)
def test_chatter_goes_and_what_was_said_stays(said: str, statement: str) -> None:
    assert rewritten(said) == statement


@table(
    ("asked", "said", "statement"),
    [
        ("What is your current long run?", "14k at about 6:10", "The user's current long run is 14k at about 6:10."),
        ("Which port?", "8443 for staging", "Asked “Which port?”, the user answered: 8443 for staging."),
        ("Which port?", "I use 8443 for staging", "The user uses 8443 for staging."),
    ],
)
def test_a_short_answer_gets_its_question(asked: str, said: str, statement: str) -> None:
    assert rewritten(said, asked=asked) == statement


@table(
    ("before", "said", "statement"),
    [
        (("Kamsi, my niece, is here.",), "she's nine and loves chess", "Kamsi is nine and loves chess."),
        (("My brother called.",), "his birthday is in May", "The user's brother's birthday is in May."),
        (("Kamsi, my niece, and Ifeoma, my sister, are here.",), "she's nine", "She's nine."),
        (("The weather is fine.",), "she's nine", "She's nine."),
        (("Mr Hale called.",), "she's nine", "She's nine."),
        (("Mr Hale called.",), "Anna says she's nine", "Anna says she's nine."),
        (("My sister had a girl.",), "they named her Clara", "They named her Clara."),
        (("My brother got a dog.",), "he calls him Rufus", "The user's brother calls him Rufus."),
        (("My sister is here.",), "her Toyota is blue", "The user's sister's Toyota is blue."),
    ],
)
def test_a_pronoun_is_replaced_only_where_one_person_can_be_meant(
    before: tuple[str, ...], said: str, statement: str
) -> None:
    assert rewritten(said, owner="person", before=before) == statement


@table("said", ["8443 for staging", "sesame, properly allergic", "wave C"])
def test_an_answer_without_subject_and_verb_is_a_fragment(said: str) -> None:
    assert is_fragment(said)


@table("said", ["the port is 8443", "I run", "Anna works here", "it's Tuesday"])
def test_a_sentence_is_no_fragment(said: str) -> None:
    assert not is_fragment(said)


@table(
    ("content", "sentences"),
    [
        ("lets goooo\nmarek plays guitar\nwhat time is it", ["lets goooo", "marek plays guitar", "what time is it"]),
        ("I prefer short functions\nover clever ones.", ["I prefer short functions\nover clever ones."]),
        ("Dr. Szabó knows. Ask at 8.40 a.m. tomorrow!", ["Dr. Szabó knows.", "Ask at 8.40 a.m. tomorrow!"]),
        ("- no gifts\n- travel claims in ten days", ["no gifts", "travel claims in ten days"]),
        ("title it HO-<date>, always\nthanks", ["title it HO-<date>, always", "thanks"]),
        ("hives from penicillin, is amoxicillin ok?", ["hives from penicillin", "is amoxicillin ok?"]),
        ("I moved to Bonn, can you fix my CV", ["I moved to Bonn", "can you fix my CV"]),
        ("I live in Lisbon, right?", ["I live in Lisbon, right?"]),
        ("> she wrote this\nI did not", ["I did not"]),
    ],
)
def test_turns_are_split_as_people_write_them(content: str, sentences: list[str]) -> None:
    found = list(own_sentences(content))
    assert [one.sentence for one in found] == sentences
    assert all(content[one.start : one.end] == one.sentence for one in found)
