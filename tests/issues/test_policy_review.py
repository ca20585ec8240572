"""Sentences that strangers wrote, and what the default policy made of them."""

import pytest

from engram import Engram
from engram.gates.policies import policy_named, policy_problems
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from tests.tables import table

DEFAULT = policy_named("default")


@table(
    "text",
    [
        "I no longer have a nut allergy",
        "The nut allergy turned out to be a misdiagnosis",
        "Doctor ruled out a shellfish allergy",
        "I have never been allergic to anything",
        "User is free of allergies",
        "Allergies: none",
        "Nut allergy: none",
        "I never had an allergy to nuts",
        "There's no need to worry about allergies",
        "I'm allergic to nothing",
        "I don't have a nut allergy",
    ],
)
def test_an_allergy_that_is_denied_is_an_exclusion(text: str) -> None:
    found = DEFAULT.apply(Memory("", text), typed=False)
    assert (found.critical_slot, found.conflict_key.startswith("allergy:")) == ("allergy_exclusion", False)


@table(
    ("fact", "remark"),
    [
        ("I live in Berlin", "I moved to Postgres"),
        ("My boss is Karen", "My boss is out today"),
        ("My boss is Karen", "My boss is leaving"),
        ("My name is Bob", "My name is misspelled"),
        ("My timezone is CET", "My timezone is confusing"),
        ("I'm married", "I'm married to my work"),
    ],
)
def test_a_remark_does_not_take_a_facts_place(fact: str, remark: str) -> None:
    with Engram.open(ephemeral=True, embedder="none") as mem:
        kept = mem.add(fact)
        mem.add(remark)
        assert mem.get(kept.id).conflict_key and mem.get(kept.id).status == "active"


def test_a_statement_given_twice_is_not_half_ignored() -> None:
    with Engram.open(ephemeral=True, embedder="none") as mem:
        with pytest.raises(InvalidInput, match="different values"):
            mem.add("The port is 1", content="The port is 2")
        assert mem.list() == []


def test_a_fact_that_is_worded_anew_has_the_key_of_what_it_says_now() -> None:
    with Engram.open(ephemeral=True, embedder="none") as mem:
        home = mem.add("The user lives in Berlin")
        assert mem.update(home.id, statement="The user likes long walks").conflict_key == ""
        own = mem.add("The lamp is on", conflict_key="lamp:desk")
        assert mem.update(own.id, statement="The lamp is off").conflict_key == "lamp:desk"


@pytest.mark.parametrize(
    ("policy", "general", "narrow"),
    [
        ("legal", "The liability cap is $1M", "The liability cap for data breaches is $5M"),
        ("coding_agent", "We run tests with pytest", "Run tests with tox before a release"),
        ("default", "No known drug allergies", "I'm allergic to nuts"),
        ("default", "No known drug allergies", "Allergic to penicillin"),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_what_holds_somewhere_only_leaves_the_rest_in_force(
    policy: str, general: str, narrow: str, turned: bool
) -> None:
    with Engram.open(ephemeral=True, embedder="none", policy=policy) as mem:
        kept = [mem.add(said).id for said in ((narrow, general) if turned else (general, narrow))]
        assert [mem.get(each).status for each in kept] == ["active", "active"]


def test_a_policy_that_code_names_wrongly_is_not_blamed_on_a_file_and_none_is_listed_twice() -> None:
    with pytest.raises(InvalidInput) as refused, Engram.open(ephemeral=True, policy="nope") as mem:
        mem.add("I live in Rome")
    assert str(refused.value).startswith("unknown policy 'nope'; known: default, legal, coding_agent; ")
    twice = policy_problems("nope", {"default": {}}, "config.toml")
    assert twice[0] == "config.toml: unknown policy 'nope'; known: default, legal, coding_agent"
