"""What is forgotten and what ends because somebody says so: the memory that is meant, and no other."""

from collections.abc import Iterator
from typing import Any

import pytest

from engram import Engram
from engram.capture.retraction import asks_to_forget, topic_words
from engram.model.decision import Outcome
from tests.tables import table

HUMAN: dict[str, Any] = {"source": "human", "scope": "global"}


@pytest.fixture
def mem() -> Iterator[Engram]:
    with Engram.open(ephemeral=True) as opened:
        yield opened


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The user's sister's phone number is 555-0199.", "Please forget my phone number."),
        ("The user's mother's doctor is Dr. Lang.", "Forget what I said about my doctor."),
        ("The user's daughter's birthday is May 3.", "Forget my birthday please."),
        ("The user's new phone number is 555-7777.", "Forget my old phone number."),
        ("I drink two cups of coffee a day.", "Forget what I said about the coffee machine."),
        ("My brother Jens lives in Odense.", "Please forget what I told you about the office in Odense."),
        ("Anna's flat is in Graz.", "Please forget what I told you about my flat in Graz."),
        ("The garden of Mrs Okafor has a pond.", "Please forget what I told you about my garden."),
        ("Tom works at a bakery.", "Please forget where I work."),
        ("The user's nephew works at a bakery.", "Please forget where I work."),
        ("The user drives their mother to her dentist.", "Forget what I said about my dentist."),
        ("The user's sister's husband sells boats.", "Forget what I said about my sister."),
        ("The user works with their sister.", "Please forget what I told you about where my sister works."),
        ("The neighbours' dog barks at night.", "Please forget what I told you about my dog."),
        ("The user's aunt's bakery opens at 7.", "Forget what I said about the bakery."),
        ("The user's team lead is Marta.", "Forget what I said about my team."),
        ("The user likes jazz.", "Forget what I said about not liking jazz."),
        ("The user's parents' house is in Ulm.", "Forget what I said about my house."),
        ("The user sold a red kayak.", "Forget what I said about the kayak club."),
    ],
)
def test_what_belongs_to_somebody_else_or_is_something_else_is_not_forgotten(
    mem: Engram, stored: str, said: str
) -> None:
    kept = mem.add(stored, source="human")
    (decision,) = mem.add_conversation(said, **HUMAN).decisions
    assert (decision.operation, decision.applied) == ("FORGET", False)
    assert (mem.get(kept.id).status, mem.review.queue()) == ("active", [])
    assert len(mem.list(status="any", limit=None)) == 1


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The user's landlord is Mr Vass in Linz.", "Please forget what I told you about my landlord."),
        ("The user's sister Ana lives in Porto.", "Forget what I said about my sister Ana."),
        ("The user's landlord Mr Vass plays golf.", "Please forget what I told you about my landlord."),
        ("The project deadline is May 3.", "Forget what I said about the deadline."),
        ("The user does not watch football.", "Forget what I said about football."),
        ("The user works at Siemens.", "Please forget where I work."),
        ("The user's car is a blue Volvo V60.", "Erase what you know about my car."),
        ("The user's aunt's bakery opens at 7.", "Forget what I said about my aunt's bakery."),
        ("The user's Kubernetes cluster runs in Frankfurt.", "Forget what I told you about the k8s cluster."),
        ("The neighbours' dog barks at night.", "Please forget what I told you about the neighbours' dog."),
    ],
)
def test_what_is_clearly_meant_is_forgotten(mem: Engram, stored: str, said: str) -> None:
    kept = mem.add(stored, source="human")
    mem.add("The user plays the cello in a quartet.", source="human")
    (decision,) = mem.add_conversation(said, **HUMAN).decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("FORGET", True, kept.id)
    assert mem.get(kept.id).status == "retired"


def test_where_it_is_not_clear_the_answer_names_what_may_be_meant(mem: Engram) -> None:
    first = mem.add("The user's bike is stored in the cellar.", source="human")
    second = mem.add("The user's bike was serviced by Radhaus.", source="human")
    (decision,) = mem.add_conversation("Please forget what I told you about my bike.", **HUMAN).decisions
    assert not decision.applied
    assert all(memory.id in decision.reason for memory in (first, second))
    assert [mem.get(memory.id).status for memory in (first, second)] == ["active", "active"]


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The user is allergic to penicillin.", "Forget that I'm allergic to penicillin."),
        ("The user takes ibuprofen 400 mg.", "Forget what I said about ibuprofen."),
        ("The user's passport number is X1234567.", "Please forget my passport number."),
    ],
)
def test_a_remark_alone_forgets_nothing_whose_loss_could_do_harm(mem: Engram, stored: str, said: str) -> None:
    kept = mem.add(stored, source="human")
    result = mem.add_conversation(said, **HUMAN)
    (decision,) = result.decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("FORGET", False, kept.id)
    assert "a person decides" in decision.reason
    assert (list(result), mem.get(kept.id).status) == ([], "active")
    assert [(item.waits_as, item.memory.id) for item in mem.review.queue()] == [("forget", kept.id)]


# -- said again


def test_a_request_that_comes_again_forgets_nothing_new(mem: Engram) -> None:
    said = "Please forget what I told you about my landlord."
    old = mem.add("The user's landlord is Mr Vass in Linz.", source="human")
    mem.add_conversation(said, session="s", **HUMAN)
    new = mem.add("The user's landlord is Mrs Kern in Wels.", source="human")
    (decision,) = mem.add_conversation(said, session="s", **HUMAN).decisions
    assert (decision.applied, mem.get(old.id).status, mem.get(new.id).status) == (False, "retired", "active")
    mem.undo(old.id)
    mem.add_conversation(said, session="s", **HUMAN)
    assert mem.get(old.id).status == "active"


def test_of_two_memories_the_second_is_not_forgotten_by_the_same_request(mem: Engram) -> None:
    said = "Please forget what I told you about my landlord Mr Vass."
    old = mem.add("The user's landlord is Mr Vass in Linz.", source="human")
    mem.add_conversation(said, session="s", **HUMAN)
    other = mem.add("The user's landlord Mr Vass plays golf.", source="human")
    mem.add_conversation(said, session="s", **HUMAN)
    assert (mem.get(old.id).status, mem.get(other.id).status) == ("retired", "active")
    mem.add_conversation(said, session="s", key="asked once more", **HUMAN)
    assert mem.get(other.id).status == "retired"


def test_a_request_that_a_person_rejected_does_not_come_back(mem: Engram) -> None:
    said = "Please forget my passport number."
    kept = mem.add("The user's passport number is X1234567.", source="human")
    mem.add_conversation(said, session="s", **HUMAN)
    mem.review.reject(kept.id)
    mem.add_conversation(said, session="s", **HUMAN)
    assert mem.review.queue() == []


def test_an_end_that_comes_again_does_not_end_what_was_said_since(mem: Engram) -> None:
    said = "I no longer play tennis with Ivo."
    mem.add("The user plays tennis with Ivo every Thursday.", source="human")
    ended = mem.add_conversation(said, session="s", **HUMAN)[0]
    again = mem.remember("The user plays tennis with Ivo again.", supersedes=[ended.id], scope="global").memory
    assert again is not None
    result = mem.add_conversation(said, session="s", **HUMAN)
    assert (list(result), mem.get(again.id).status) == ([], "active")


# -- what has ended


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The user drinks coffee.", "I no longer drink coffee after 3 pm."),
        ("The user uses Docker on Linux.", "I no longer use Docker on Windows."),
        ("The user plays the piano.", "I no longer play the piano in the band."),
        ("The user eats meat.", "I no longer eat meat on Fridays."),
        ("The user cycles to work.", "I no longer cycle to work in winter."),
        ("The team deploys on Fridays.", "The team no longer deploys on Fridays before holidays."),
        ("The user goes running with Mo.", "I no longer go swimming with Mo."),
    ],
)
def test_an_end_of_a_part_does_not_end_the_whole(mem: Engram, stored: str, said: str) -> None:
    kept = mem.add(stored, source="human")
    result = mem.add_conversation(said, **HUMAN)
    assert mem.get(kept.id).status == "active"
    assert all(kept.id not in memory.supersedes for memory in result)


def test_an_end_of_a_part_waits_beside_the_whole(mem: Engram) -> None:
    kept = mem.add("The user drinks coffee.", source="human")
    (stored,) = mem.add_conversation("I no longer drink coffee after 3 pm.", **HUMAN)
    assert stored.status == "candidate"
    (item,) = mem.review.queue()
    assert (item.memory.id, item.other and item.other.id) == (stored.id, kept.id)
    mem.review.resolve(stored.id, "both")
    assert [mem.get(memory.id).status for memory in (kept, stored)] == ["active", "active"]


@pytest.mark.parametrize(
    ("stored", "said"),
    [
        ("The user plays tennis with Ivo every Thursday.", "I no longer play tennis with Ivo."),
        ("The user plays tennis with Ivo.", "I no longer play tennis."),
        ("The user works at Siemens in Graz.", "I no longer work at Siemens."),
    ],
)
def test_an_end_of_the_whole_ends_it(mem: Engram, stored: str, said: str) -> None:
    old = mem.add(stored, source="human")
    (decision,) = mem.add_conversation(said, **HUMAN).decisions
    assert (decision.operation, decision.applied, decision.target_id) == ("END", True, old.id)
    assert mem.get(old.id).status == "superseded"


# -- requests are no facts


@table(
    "said",
    [
        "Forget that I'm allergic to penicillin.",
        "please forget my number",
        "Could you forget everything I said about Berlin?",
        "OK, please erase what I told you about the offer.",
        "Delete my address from your memory.",
        "I'd like you to disregard what I said about Monday.",
    ],
)
def test_a_request_to_forget_is_known_by_its_beginning(said: str) -> None:
    assert asks_to_forget(said)


@table(
    "said",
    [
        "Don't forget that our lease ends in August.",
        "I always forget my umbrella.",
        "Delete merged branches after each release.",
        "Remove unused imports before a commit.",
        "Never forget the tests.",
        "My son forgets his lunch.",
    ],
)
def test_what_only_speaks_of_forgetting_is_no_request(said: str) -> None:
    assert not asks_to_forget(said)


def test_what_is_named_is_told_from_the_words_around_it() -> None:
    assert topic_words("Please forget what the user told you about their old phone number.") == [
        "old",
        "phone",
        "number",
    ]
    assert topic_words("Delete the user's sister's address from your memory, please.") == ["sister", "address"]
    assert topic_words("Forget that the user told Anna.") == ["told", "anna"]


def test_a_request_read_as_a_fact_is_not_stored(mem: Engram) -> None:
    result = mem.add_conversation("Forget that I'm allergic to penicillin.", **HUMAN)
    assert (list(result), mem.list(status="any")) == ([], [])


def test_what_a_caller_names_is_all_that_is_replaced(mem: Engram) -> None:
    api = mem.remember("The API listens on port 8080.").memory
    web = mem.remember("The web UI listens on port 3000.").memory
    assert api is not None and web is not None
    decision = mem.remember("The API listens on port 9090 now.", supersedes=[web.id])
    assert decision.outcome == Outcome.SUPERSEDED and decision.memory is not None
    assert decision.memory.supersedes == (web.id,)
    assert mem.get(api.id).status == "active"
    assert api.id in [related.memory.id for related in decision.related]
