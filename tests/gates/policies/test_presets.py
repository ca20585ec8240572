"""What the presets make of sentences: the tables beside this file, and pairs that must or must not replace each other."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from engram.gates.policies import PRESETS, MemoryPolicy, SlotRule, TypeRule, policy_named
from engram.model.memory import Memory
from engram.model.types import memory_type
from tests.tables import table

HERE = Path(__file__).parent
UNTYPED = "behavioral"
BY_MODEL = "~"
"""No rule gives the type: the trained model does, which tests/models/test_types.py is about."""


def rows(preset: str) -> list[tuple[str, str, str, str]]:
    lines = [line for line in (HERE / f"{preset}.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    return [(said, kind, slot, key) for said, kind, slot, key in (line.rsplit(" | ", 3) for line in lines)]


SENTENCES = [row[0] for preset in PRESETS for row in rows(preset)]


def read(preset: str, statement: str) -> Memory:
    return policy_named(preset).apply(Memory("", statement, type=UNTYPED), typed=False)


def shown(preset: str, statement: str) -> tuple[str, str, str, str]:
    found = read(preset, statement)
    kind = found.type if found.type != UNTYPED else "-"
    return statement, kind, found.critical_slot or "-", found.conflict_key or "-"


@pytest.mark.parametrize("preset", PRESETS)
def test_every_sentence_gets_its_type_slot_and_key(preset: str) -> None:
    expected = rows(preset)
    wrong = []
    for row in expected:
        said, kind, slot, key = shown(preset, row[0])
        if (said, BY_MODEL if row[1] == BY_MODEL else kind, slot, key) != row:
            wrong.append((said, kind, slot, key))
    assert wrong == []


@pytest.mark.parametrize("preset", PRESETS)
def test_there_are_sixty_sentences_and_more_with_both_outcomes(preset: str) -> None:
    keys = [key for _, _, _, key in rows(preset)]
    assert len(keys) >= 60
    assert min(sum(key == "-" for key in keys), sum(key != "-" for key in keys)) >= 20


SHARED = [
    ("default", "I live in Berlin", "I live in Lisbon"),
    ("default", "I live in Berlin", "The user has moved to Lisbon"),
    ("default", "User lives in Berlin, Germany", "Actually, I'm based in Lisbon now"),
    ("default", "Alice lives in Rome", "Alice moved to Milan"),
    ("default", "I'm allergic to peanuts", "User has a severe peanut allergy"),
    ("default", "I take 20 mg of lisinopril", "I take 40 mg of lisinopril daily"),
    ("default", "My favourite colour is blue", "User's favorite color is green"),
    ("default", "The launch date is May 5", "The launch was moved to June 1"),
    ("default", "The project target is 10k users", "The target for the project is 20k users"),
    ("default", "I prefer Vim", "User switched to Zed"),
    ("default", "I work at Acme", "The user joined Globex"),
    ("default", "I'm 34", "I just turned 35"),
    ("legal", "The governing law is Delaware", "This Agreement is governed by the laws of New York"),
    ("legal", "The liability cap is $1M", "Liability is capped at $2M"),
    ("legal", "Payment terms are net 30", "Invoices are due within 45 days"),
    ("legal", "The hearing is scheduled for May 4", "The hearing has been moved to June 8"),
    ("coding_agent", "Use npm", "We switched to pnpm"),
    ("coding_agent", "Use Python 3.11", "This project requires Python 3.12"),
    ("coding_agent", "Use tabs", "Indent with 2 spaces"),
    ("coding_agent", "The test command is make test", "Run the tests with pytest -q"),
    ("coding_agent", "The GitHub API rate limit is 5000 per hour", "The rate limit of the GitHub API is 60 per hour"),
]

APART = [
    ("default", "I live in Berlin", "Alice lives in Rome"),
    ("default", "I live in Berlin", "I lived in Rome"),
    ("default", "I live in Berlin", "I want to live in Rome"),
    ("default", "I live in Berlin", "I no longer live in Berlin"),
    ("default", "I live in Berlin", "I live in Berlin and my brother lives in Rome"),
    ("default", "My sister lives in Rome", "My brother lives in Oslo"),
    ("default", "I'm allergic to nuts", "I'm allergic to shellfish"),
    ("default", "I'm allergic to nuts", "I have no allergies"),
    ("default", "I'm allergic to nuts", "I'm not allergic to nuts"),
    ("default", "I'm allergic to nuts", "My son is allergic to nuts"),
    ("default", "I don't eat pork", "I eat pork"),
    ("default", "I don't eat pork", "I don't eat beef"),
    ("default", "My email is a@b.org", "My work email is a@c.org"),
    ("default", "My name is Robert", "Call me Bob"),
    ("default", "My name is Robert", "My dog's name is Rex"),
    ("default", "The thesis deadline is May 1", "The report deadline is May 2"),
    ("default", "The marketing budget is 50k", "The marketing target is 50k"),
    ("default", "The Phoenix launch is on May 1", "The Apollo launch is on May 2"),
    ("default", "I prefer pnpm", "I prefer uv"),
    ("default", "I prefer Vim", "I prefer Vim for Python"),
    ("default", "My favourite film is Alien", "My favourite book is Emma"),
    ("legal", "The governing law is Delaware", "The Acme MSA is governed by English law"),
    ("legal", "The effective date of the MSA is May 1", "The effective date of the NDA is June 1"),
    ("legal", "The Licensor is Acme", "The Licensee is Globex"),
    ("legal", "The liability cap is $1M", "Liability is unlimited"),
    ("legal", "The liability cap is $1M", "Opposing counsel proposed a liability cap of $2M"),
    ("legal", "The notice period is 30 days", "Customer may terminate with 60 days notice"),
    ("coding_agent", "Use black for formatting", "Use prettier for formatting"),
    ("coding_agent", "Use 2 spaces for YAML", "Use 4 spaces in Python"),
    ("coding_agent", "Use npm", "Don't use npm"),
    ("coding_agent", "Use npm", "We might move to pnpm"),
    ("coding_agent", "Run unit tests with make unit", "Run e2e tests with make e2e"),
    ("coding_agent", "Use Python 3.12", "Use Node 20"),
    ("coding_agent", "The search API is limited to 9 requests per second", "There is no rate limit on the search API"),
    ("coding_agent", "We use mypy", "We use pyright"),
    ("coding_agent", "The v2 release date is May 1", "The v2 code freeze is April 20"),
]


@table(("preset", "older", "newer"), SHARED)
def test_of_these_only_one_can_be_true_at_a_time(preset: str, older: str, newer: str) -> None:
    assert read(preset, older).conflict_key == read(preset, newer).conflict_key != ""


@table(("preset", "one", "other"), APART)
def test_these_hold_together_and_never_share_a_key(preset: str, one: str, other: str) -> None:
    first, second = read(preset, one).conflict_key, read(preset, other).conflict_key
    assert not first or first != second


EXCLUSIONS = [
    ("default", "I'm allergic to nuts", "I have no allergies"),
    ("default", "My son is allergic to eggs", "My son isn't allergic to eggs any more"),
    ("default", "I'm vegan", "I'm not vegan"),
    ("default", "I don't eat pork", "I eat everything"),
    ("default", "I have diabetes", "I don't have diabetes"),
    ("default", "I take 5 mg of warfarin", "I stopped taking warfarin"),
    ("legal", "The liability cap is $1M", "There is no cap on liability"),
    ("legal", "The Supplier shall indemnify the Buyer", "The Supplier does not indemnify the Buyer"),
    ("legal", "The Tenant shall paint the walls", "The Tenant shall not paint the walls"),
    ("coding_agent", "The Stripe API rate limit is 100 per second", "The Stripe API is not rate limited"),
]


@table(("preset", "fact", "exclusion"), EXCLUSIONS)
def test_a_fact_and_its_exclusion_stand_in_different_slots(preset: str, fact: str, exclusion: str) -> None:
    first, second = read(preset, fact), read(preset, exclusion)
    assert first.critical_slot
    assert second.critical_slot
    assert first.critical_slot != second.critical_slot
    assert not second.conflict_key or first.conflict_key != second.conflict_key


@pytest.mark.parametrize(
    "wrapped",
    ["{}?", "If {}, tell me", "Maybe {}", "I wonder whether {}", "It is not true that {}", "{}, or so I thought"],
)
@pytest.mark.parametrize(
    "said", ["I live in Berlin", "my name is Bob", "I work at Acme", "my favourite colour is blue"]
)
def test_a_question_a_condition_and_a_doubt_replace_nothing(wrapped: str, said: str) -> None:
    assert read("default", wrapped.format(said)).conflict_key == ""


@pytest.mark.parametrize("preset", PRESETS)
def test_every_rule_of_a_preset_can_be_used(preset: str) -> None:
    policy = policy_named(preset)
    assert MemoryPolicy(policy.name, policy.types, policy.slots, policy.trained) == policy


@pytest.mark.parametrize("preset", PRESETS)
def test_no_preset_infers_a_sensitive_type(preset: str) -> None:
    inferred = [memory_type(rule.type) for rule in policy_named(preset).types]
    assert {one.name for one in inferred if one.tier > 1} <= {"constraint"}


@pytest.mark.parametrize("preset", PRESETS)
def test_every_rule_has_a_sentence_that_it_fits(preset: str) -> None:
    unused = [rule for rule in rules(preset) if not any(map(rule_fits(rule), SENTENCES))]
    assert unused == []


@pytest.mark.parametrize("preset", PRESETS)
def test_no_rule_is_passed_over_for_want_of_its_words(preset: str) -> None:
    words = {said: set(re.findall(r"[^\W_]+", said.lower())) for said in SENTENCES}
    missed = [
        (said, rule.pattern)
        for rule in rules(preset)
        for said in filter(rule_fits(rule), SENTENCES)
        if rule.words and words[said].isdisjoint(rule.words)
    ]
    assert missed == []


def rules(preset: str) -> list[TypeRule | SlotRule]:
    policy = policy_named(preset)
    return [*policy.types, *policy.slots]


def rule_fits(rule: TypeRule | SlotRule) -> Callable[[str], bool]:
    pattern, unless = re.compile(rule.pattern, re.I), re.compile(rule.unless or r"(?!)", re.I)
    return lambda said: pattern.search(said) is not None and unless.search(said) is None
