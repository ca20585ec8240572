"""Questions about a name and nothing else."""

from collections.abc import Mapping

import pytest

from engram import Engram
from engram.recall.questions import name_asked_about
from tests.backends import Backend
from tests.tables import table

HALCYON = (
    "Halcyon orders breakfast buffets",
    "The purchasing department of Halcyon is in Graz",
    "Leopold Wimmer buys for Halcyon",
    "Invoices of Halcyon are paid within 45 days",
)
PORT = "The gateway listens on port 8443"
OTHERS = ("The router answers on port 9000", "Bread comes from Mill Berger", "Quotes are valid for 14 days")
NAMES: Mapping[str, str] = {
    "Jest": "Jest",
    "8443": "8443",
    "what is MRL-4127?": "MRL-4127",
    "what do we know about Halcyon?": "Halcyon",
    "what changed at Halcyon": "Halcyon",
    "napkins": "napkins",
    "who owns Halcyon?": "",
    "what did Anna and Bob change?": "",
    "where is the kitchen": "",
    "": "",
}


@pytest.fixture
def mem(backend: Backend) -> Engram:
    client = backend.client()
    for statement in (*HALCYON, PORT, *OTHERS):
        client.learn(statement, source="user", scope="global")
    return client


@table("question, name", NAMES.items())
def test_the_name_is_read_if_nothing_else_is_asked(question: str, name: str) -> None:
    assert name_asked_about(question) == name


@pytest.mark.parametrize("question", ["what changed at Halcyon", "what do we know about Halcyon?", "Halcyon"])
def test_everything_about_a_name_is_known(mem: Engram, question: str) -> None:
    assert {hit.text for hit in mem.recall(question, scope="global").hits} == set(HALCYON)


def test_an_identifier_finds_what_contains_it(mem: Engram) -> None:
    assert [hit.text for hit in mem.recall("8443", scope="global").hits] == [PORT]


def test_a_similar_identifier_is_only_possible(mem: Engram) -> None:
    assert not mem.recall("8444", scope="global").hits


def test_the_limit_holds(mem: Engram) -> None:
    assert len(mem.recall("Halcyon", scope="global", limit=2).hits) == 2
