"""Answerability: `recall` stays silent if only the detail asked for is missing, and still answers what it knows."""

from collections.abc import Iterator

import numpy as np
import pytest

from engram import Engram
from engram.recall.relevance import (
    EVIDENCE,
    FEATURES,
    TYPES,
    answer_probabilities,
    find_asked_types,
    find_head_terms,
    measure_stated_types,
)
from engram.text.tokens import query_terms, tokens

OBSERVATORY = (
    "The big telescope is a 60 cm Ritchey-Chrétien that Dr Maurer had built in Jena.",
    "On public nights the dome opens at half past eight; children under six stay in the planetarium.",
    "The dome motor jams below minus eight degrees, then it is turned by hand with the crank on the north wall.",
    "Ludmila gives the Saturday tour in Czech and German.",
    "Membership of the friends' circle costs 35 euros a year and includes the quarterly.",
    "The guest room above the library has two beds and must be booked with Frau Ilgner.",
    "Asteroid 31844 was discovered here on 4 November 1999 and is named after Dr Maurer's wife.",
    "The dark room chemicals are picked up by the town in spring.",
    "Light from the new football ground spoils the western sky until ten.",
    "The spectrograph went back to the maker in March because the grating was scratched.",
    "School groups pay 40 euros and need two adults with them.",
    "The night assistant writes the seeing and the humidity into the green log book every hour.",
)
ANSWERABLE = {
    "when does the dome open for visitors": 1,
    "the dome doesn't move and it is freezing, what now": 2,
    "which languages does Ludmila speak on the tour": 3,
    "what does it cost to be a member": 4,
    "who do I ask for the guest room": 5,
    "when was the asteroid found": 6,
    "why can't we observe in the west before ten": 8,
    "why was the spectrograph sent back": 9,
    "how much does a school class pay": 10,
    "where do I note the humidity": 11,
}
UNANSWERABLE = (
    "what is Frau Ilgner's phone number",
    "how much does a night in the guest room cost",
    "What is the first name of Dr Maurer's wife?",
    "how heavy is the big telescope",
    "which company made the spectrograph",
    "what colour is the dome",
    "how many members does the friends' circle have",
    "how old is Ludmila",
    "who donated the asteroid camera",
    "What is Ludmila's surname?",
)


@pytest.fixture(scope="module")
def mem() -> Iterator[Engram]:
    with Engram.open(ephemeral=True) as opened:
        opened.add_batch([{"statement": statement} for statement in OBSERVATORY])
        yield opened


def test_what_is_known_is_likelier_than_the_nearest_memory_without_the_detail_asked_for(mem: Engram) -> None:
    right = {
        question: max((hit.relevance for hit in mem.search(question) if hit.text == OBSERVATORY[place]), default=0.0)
        for question, place in ANSWERABLE.items()
    }
    wrong = {question: max((hit.relevance for hit in mem.search(question)), default=0.0) for question in UNANSWERABLE}
    pairs = [(known, unknown) for known in right for unknown in wrong]
    ordered = sum(right[known] > wrong[unknown] for known, unknown in pairs)
    assert ordered / len(pairs) >= 0.73, (right, wrong)  # by their words alone, .71


@pytest.mark.parametrize(
    ("question", "wanted"),
    [
        ("How much is the fee?", {"money"}),
        ("who called", {"person", "name"}),
        ("What time does it open?", {"time"}),
        ("why is it late", {"reason"}),
        ("what colour is it", {"colour"}),
        ("is it raining", set()),
    ],
)
def test_a_question_asks_for_types_of_values(question: str, wanted: set[str]) -> None:
    asked = {name for name, is_asked in zip(TYPES, find_asked_types(question), strict=True) if is_asked}
    assert wanted <= asked and (wanted or not asked)


@pytest.mark.parametrize(
    ("question", "head"),
    [
        ("What is Ada's fax number?", "fax number"),
        ("which brand is the oven", "brand"),
        ("the price of the oven", "price"),
    ],
)
def test_the_head_of_a_question_is_what_it_asks_for(question: str, head: str) -> None:
    assert find_head_terms(question) >= set(query_terms(head))


def test_only_values_that_the_question_does_not_contain_count() -> None:
    asked = frozenset(query_terms("what did room 12 cost"))
    names = dict(zip(TYPES, measure_stated_types(tokens("Room 12 is closed"), (), asked), strict=False))
    assert names["money"] == names["count"] == 0
    names = dict(zip(TYPES, measure_stated_types(tokens("Room 12 cost 80 euros"), (), asked), strict=False))
    assert names["money"] == names["count"] == 1


def test_the_shipped_trees_read_every_feature_and_give_a_probability() -> None:
    width = len(FEATURES) + len(EVIDENCE) + 5
    found = answer_probabilities(np.array([[0.0] * width, [1.0] * width], dtype=np.float32))
    assert len(found) == 2 and all(0 < value < 1 for value in found)
