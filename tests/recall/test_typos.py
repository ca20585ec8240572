"""Typing errors in questions."""

from collections.abc import Mapping, Sequence

import pytest

from engram import Engram
from engram.recall.typos import edits_of
from tests.backends import Backend
from tests.tables import table

STATEMENTS = (
    "The dispatcher is written in TypeScript with strict mode turned on",
    "The domain harbour.example is registered with Gandi",
    "Background jobs go through RabbitMQ",
    "The dessert wine comes from Rust",
    "Failed calls are answered by three retries",
    "Ticket HRB-4127 is about the label printer",
)


@pytest.fixture
def mem(backend: Backend) -> Engram:
    client = backend.client()
    for statement in STATEMENTS:
        client.learn(statement, source="user", scope="global")
    return client


MISSPELLED: Mapping[str, str] = {
    "typsecript settings": STATEMENTS[0],
    "where is the domian registered": STATEMENTS[1],
    "Rabitmq": STATEMENTS[2],
}


def test_a_misspelled_word_finds_the_stored_one(mem: Engram) -> None:
    found = {question: [hit.text for hit in mem.recall(question, scope="global").hits[:1]] for question in MISSPELLED}
    assert found == {question: [statement] for question, statement in MISSPELLED.items()}


def test_search_finds_it_too_and_names_the_correction(mem: Engram) -> None:
    hits = mem.search("typsecript settings")
    assert hits[0].text == STATEMENTS[0]
    assert "Nothing mentions “typsecript”; searched for “typescript”." in hits.warnings


def test_a_correction_is_a_word_and_not_its_stem(mem: Engram) -> None:
    assert "Nothing mentions “retreis”; searched for “retries”." in mem.search("how many retreis").warnings


UNCORRECTED = {
    "a common word": "desert wine",
    "a derived word": "pasted labels",
    "an identifier": "HRB-4128",
    "a question in another language": "où est le domian enregistré",
    "a stored word": "typescript",
}


@table("question", UNCORRECTED.values(), ids=UNCORRECTED)
def test_nothing_is_corrected_that_is_no_typing_error(mem: Engram, question: str) -> None:
    assert not any("searched for" in warning for warning in mem.search(question).warnings)


def test_a_word_of_another_scope_corrects_nothing(mem: Engram) -> None:
    mem.learn("The vault is called Zarathrix", source="user", scope="project:other")
    assert not mem.search("where is Zarathrx", scope="global").warnings


def test_an_edit_keeps_the_first_letter() -> None:
    edits: Sequence[str] = list(edits_of("abc"))
    assert {"ac", "acb", "abx", "abcx", "axbc"} <= set(edits)
    assert all(edit.startswith("a") for edit in edits)
