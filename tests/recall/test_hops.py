"""Second searches for the entities that first hits name."""

import pytest

from engram import Engram
from engram.model.hit import Hit
from engram.recall.questions import FOUND_BY_ENTITY, plan_hops
from tests.backends import Backend

CONTACT, PERSON = "The contact at Norsend is Yusuf Demir", "Yusuf Demir prefers phone calls before noon"
OTHERS = ("Norsend uses SOAP for its orders", "The gateway listens on port 8443", "Petra Lindqvist owns the domain")
QUESTION = "how does our contact at Norsend like to be called?"


@pytest.fixture
def mem(backend: Backend) -> Engram:
    client = backend.client()
    for statement in (CONTACT, PERSON, *OTHERS):
        client.learn(statement, source="user", scope="global")
    return client


def first_hits(mem: Engram, question: str) -> list[Hit]:
    return mem.search(question, limit=1)


def test_an_entity_of_the_first_hit_is_followed(mem: Engram) -> None:
    hits = mem.recall(QUESTION, scope="global").hits
    assert {CONTACT, PERSON} <= {hit.text for hit in hits}
    followed = next(hit for hit in hits if hit.text == PERSON)
    assert followed.trace is not None and FOUND_BY_ENTITY in followed.trace.found_by


def test_the_entity_replaces_what_the_hit_says(mem: Engram) -> None:
    (hop,) = plan_hops(QUESTION, first_hits(mem, QUESTION))
    assert (hop.entity, hop.text) == ("Yusuf Demir", "how does our Yusuf Demir at like to be called")


def test_a_hit_that_says_everything_is_not_followed(mem: Engram) -> None:
    assert plan_hops("who is the contact at Norsend?", first_hits(mem, "contact at Norsend")) == []


def test_an_entity_that_the_question_names_is_not_followed(mem: Engram) -> None:
    assert plan_hops("does Yusuf Demir work at Norsend in Malmö?", first_hits(mem, "contact at Norsend")) == []


def test_nothing_is_followed_where_nothing_is_known(mem: Engram) -> None:
    assert not mem.recall("who paints the fence of the harbour?", scope="global").hits
