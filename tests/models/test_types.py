"""The trained model of types and critical slots: what sensible people agree on, in wordings it was not trained on."""

from pathlib import Path

import pytest

from engram import Engram
from engram.gates.policies import MemoryPolicy, policy_named
from engram.model.memory import Memory
from engram.models import statement_kinds
from engram.models.statement_kinds import SLOTS, TYPES, critical_slot, slot_probabilities, type_of
from tests.tables import table

FACTS = """\
The office is on Hill Street
Our CI runs on Buildkite
Room 12 seats 8
The cat is called Pixel
My sister Anna lives in Bergen
Bergen has about 290,000 inhabitants
Our accountant is Mr Falk
The router stands behind the bookshelf
The staging database is called heron
The user's bike is a green Peugeot
We have three printers on the second floor
The warehouse in Delft stores the winter tyres
The church was built in 1874
My landlord is called Ferris
""".splitlines()
HAPPENINGS = """\
I went to the dentist yesterday
We had a flood in the basement on Monday
The deploy failed last night because a certificate had expired
Rosa fell off her bike on the way to school this morning
My laptop was stolen on the train last week
The auditors came in March and stayed for four days
I ran into Piotr at the market on Saturday
The goats broke through the fence again yesterday
We lost the match 4-2 on Sunday
The heating broke down during the frost in January
""".splitlines()
CRITICAL_SAYINGS = {
    "I can't have gluten": "dietary_restriction",
    "Penicillin makes me break out in hives": "allergy",
    "Kim must not be given aspirin": "medication",
    "The user is allergic to sesame": "allergy",
    "My mother takes warfarin every evening": "medication",
    "Noa has type 1 diabetes": "medical_condition",
}
HARMLESS = """\
I like my coffee black
Never push to main
Use metric units
You must always cite sources
The pharmacy closes at six
The recipe needs two eggs and some milk
I don't eat breakfast
Our health check runs every minute
The tests must pass before a merge
Someone who lives in Oslo told me that
Remind me to buy milk
The vet sells diabetic dog food
We use yarn for packages
The novel is about a nurse
Tag every release before deploying it
The report must not be longer than ten pages
""".splitlines()


def test_plain_statements_are_facts() -> None:
    read = {said: type_of(said)[0] for said in FACTS}
    missed = {said: kind for said, kind in read.items() if kind != "fact"}
    assert len(missed) <= 1, missed


def test_what_happened_is_an_episode() -> None:
    read = {said: type_of(said)[0] for said in HAPPENINGS}
    missed = {said: kind for said, kind in read.items() if kind != "episodic"}
    assert len(missed) <= 2, missed


def test_critical_statements_are_known_by_their_meaning() -> None:
    assert {said: critical_slot(said) for said in CRITICAL_SAYINGS} == CRITICAL_SAYINGS


def test_harmless_statements_fill_no_slot() -> None:
    assert {said: slot for said in HARMLESS if (slot := critical_slot(said))} == {}


def test_a_question_fills_no_slot() -> None:
    assert critical_slot("Does penicillin make me break out in hives?") == ""


@table("said", ["", " ", "?", "…", "я не ем мясо", "\ud800", "x" * 100_000, "a\0b"])
def test_any_text_can_be_read(said: str) -> None:
    name, probability = type_of(said)
    assert name in TYPES.classes and 0 < probability <= 1
    assert critical_slot(said) in SLOTS.classes
    assert sum(slot_probabilities(said)) == pytest.approx(1)


def test_the_files_are_small() -> None:
    folder = Path(statement_kinds.__file__).parent
    assert sum((folder / model.file).stat().st_size for model in (TYPES, SLOTS)) <= 300_000


def test_a_rule_comes_before_the_model_and_a_named_type_before_both() -> None:
    said = "The office is on Hill Street"
    assert policy_named("default").apply(Memory("", said), typed=False).type == "fact"
    assert policy_named("default").apply(Memory("", said, type="project"), typed=True).type == "project"
    assert MemoryPolicy("rules alone").apply(Memory("", said, type="semantic"), typed=False).type == "semantic"
    assert MemoryPolicy("both", trained=True).apply(Memory("", said), typed=False).type == "fact"
    given = Memory("", "Penicillin makes me break out in hives", critical_slot="mine")
    assert policy_named("default").apply(given, typed=False).critical_slot == "mine"


def test_what_is_critical_by_meaning_is_in_every_prompt() -> None:
    with Engram.open(ephemeral=True) as mem:
        known = mem.remember("Kim must not be given aspirin").memory
        assert known is not None and known.critical_slot == "medication"
        if known.status == "candidate":
            mem.review.approve(known.id)
        assert "aspirin" in mem.inject("Plan the office party").text
