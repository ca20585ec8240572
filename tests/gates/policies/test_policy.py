"""A policy made in code: what it changes, what it leaves alone, what it refuses."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engram.gates.policies import PRESETS, MemoryPolicy, SlotRule, TypeRule, policy_named
from engram.gates.policies.policy import MAX_PATTERN_CHARS, MAX_RULE_CHARS
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from tests.tables import table

BACK_AND_FORTH = 20.0
"""Seconds of the processor: a slow machine needs a tenth of it, a rule that reads the text again from each place minutes."""
SHOP = MemoryPolicy(
    "shop",
    types=(TypeRule(r"\bon sale\b", "episodic", unless=r"\bnot\b"), TypeRule(r"\bsale\b", "decision")),
    slots=(
        SlotRule(r"\brecall of (?P<what>[\w ]+)", critical_slot="recall", conflict_key="recall:{what}"),
        SlotRule(r"\brecall\b", critical_slot="any_recall"),
        SlotRule(r"price of (?P<what>\w+)", conflict_key="price:{what}", types=("fact",)),
    ),
)


def read(statement: str, policy: MemoryPolicy = SHOP, *, typed: bool = False, **fields: str) -> Memory:
    return policy.apply(Memory("ENG-1", statement, **fields), typed=typed)  # type: ignore[arg-type]


def test_the_first_rule_that_fits_names_the_type() -> None:
    assert read("Shoes are ON SALE").type == "episodic"
    assert read("Shoes are not on sale").type == "decision"
    assert read("Shoes are here").type == "behavioral"


def test_a_type_that_the_caller_named_stays() -> None:
    assert read("Shoes are on sale", typed=True, type="preference").type == "preference"


def test_what_a_memory_has_of_its_own_stays() -> None:
    found = read("A recall of The Red Shoes", critical_slot="mine")
    assert (found.critical_slot, found.conflict_key) == ("mine", "recall:red_shoe")
    found = read("A recall of The Red Shoes", conflict_key="mine")
    assert (found.critical_slot, found.conflict_key) == ("recall", "mine")


def test_slot_and_key_may_come_from_different_rules() -> None:
    found = read("Recall: the price of shoes", type="fact", typed=True)
    assert (found.critical_slot, found.conflict_key) == ("any_recall", "price:shoe")


def test_a_rule_for_some_types_leaves_the_others_alone() -> None:
    assert read("The price of shoes is 5", type="decision", typed=True).conflict_key == ""


def test_nothing_to_say_returns_the_very_memory() -> None:
    memory = Memory("ENG-1", "Nothing of that")
    assert SHOP.apply(memory, typed=False) is memory


def test_only_the_beginning_of_a_long_statement_is_read() -> None:
    assert read("x " * (MAX_RULE_CHARS // 2) + "on sale").type == "behavioral"
    assert read("x " * 100 + "on sale").type == "episodic"


@pytest.mark.parametrize("said", ["a’s price of  \n shoes", "a's price of shoes"])
def test_spaces_and_curly_apostrophes_make_no_difference(said: str) -> None:
    assert read(said, type="fact", typed=True).conflict_key == "price:shoe"


def test_a_group_that_took_no_part_is_left_out_of_the_key() -> None:
    rule = SlotRule(r"^law(?: of (?P<of>\w+))? is", conflict_key="law:{of}")
    policy = MemoryPolicy("law", slots=(rule,))
    assert read("law is X", policy).conflict_key == "law"
    assert read("law of Acme is X", policy).conflict_key == "law:acme"


def test_what_is_too_long_for_a_key_gives_none_rather_than_a_beginning_that_others_share() -> None:
    found = read(f"A recall of {'red ' * 30} shoes")
    assert (found.critical_slot, found.conflict_key) == ("recall", "")


def test_the_subject_of_i_my_and_the_user_is_one_and_a_pronoun_is_none() -> None:
    rule = SlotRule(r"^(?:(?P<who>\w+|the user)|(?P<who2>\w+'s car)) (?:drives?|is) ", conflict_key="car:{who}")
    policy = MemoryPolicy("cars", slots=(rule,))
    keys = {said: read(f"{said} drive a car", policy).conflict_key for said in ("I", "User", "The user", "She", "Ann")}
    assert keys == {"I": "car:user", "User": "car:user", "The user": "car:user", "She": "", "Ann": "car:ann"}


@table(
    ("make", "complaint"),
    [
        (lambda: TypeRule("(", "fact"), "type rule: its pattern is not a regular expression"),
        (lambda: TypeRule("a", "fact", unless="["), "type rule: its unless is not a regular expression"),
        (lambda: TypeRule("", "fact"), "type rule has no pattern"),
        (lambda: TypeRule(5, "fact"), "its pattern must be a string, not int"),  # type: ignore[arg-type]
        (lambda: TypeRule("a" * (MAX_PATTERN_CHARS + 1), "fact"), f"maximum {MAX_PATTERN_CHARS}"),
        (lambda: TypeRule("(?:" * 61 + "a" + ")" * 61, "fact"), "its pattern nests more than 60 groups"),
        (lambda: TypeRule("a", "fact", words=("Two words",)), "single lower-case words"),
        (lambda: SlotRule("a"), "slot rule has neither"),
        (lambda: SlotRule("(", critical_slot="k"), "slot rule: its pattern is not a regular expression"),
        (lambda: SlotRule("a", conflict_key="k:{what}"), "names the group 'what', which the pattern does not have"),
        (lambda: SlotRule("(?P<what>a)", conflict_key="k:{what"), "has an unmatched brace"),
        (lambda: SlotRule("a", critical_slot="k" * 200), "its critical_slot has more than"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_when_it_is_made(make: Callable[[], object], complaint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        make()
    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("types", "slots", "complaint"),
    [
        ((TypeRule("a", "fact"), TypeRule("b", "fancy")), (), "type rule 2: unknown type 'fancy'"),
        ((), (SlotRule("a", critical_slot="k", types=("fancy",)),), "slot rule 1: unknown type 'fancy'"),
        ((TypeRule("(", "fact", vetted=True),), (), "type rule 1: its pattern is not a regular expression"),
    ],
)
def test_a_rule_that_cannot_be_used_is_refused_by_name(
    types: tuple[TypeRule, ...], slots: tuple[SlotRule, ...], complaint: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        MemoryPolicy("mine", types, slots)
    assert "policy 'mine'" in str(refused.value)
    assert complaint in str(refused.value)


def test_a_policy_needs_a_name() -> None:
    with pytest.raises(InvalidInput):
        MemoryPolicy("")


WORDS = (
    "I my user the is 's am not no live lives in Berlin allergic to nuts never must shall email deadline May 5 use npm "
    "Alice and or if ? . , : works at as a favourite color governing law of Agreement notice 30 days tabs port 8080 ’ \n"
)
STATEMENTS = st.one_of(st.text(max_size=200), st.lists(st.sampled_from(WORDS.split(" ")), max_size=14).map(" ".join))


@given(STATEMENTS, st.sampled_from(PRESETS), st.booleans(), st.sampled_from(["", "own"]), st.sampled_from(["", "mine"]))
def test_any_statement_is_read_alike_twice_and_keeps_what_it_was_given(
    said: str, preset: str, typed: bool, slot: str, key: str
) -> None:
    policy = policy_named(preset)
    memory = Memory("ENG-1", said, type="semantic", critical_slot=slot, conflict_key=key)
    once = policy.apply(memory, typed=typed)
    assert policy.apply(once, typed=typed) == once
    assert not slot or once.critical_slot == slot
    assert not key or once.conflict_key == key
    assert not typed or once.type == "semantic"
    changed = {"type": once.type, "critical_slot": once.critical_slot, "conflict_key": once.conflict_key}
    assert memory.replace(**changed) == once


@table("preset", PRESETS)
@table(
    "piece",
    [
        "I live in the ",
        "a",
        "A ",
        "my ",
        "no ",
        "my A's ",
        "allergic to ",
        "the shall not ",
        "use ",
        "x-",
        "1 ",
        "first ",
    ],
)
def test_no_long_statement_takes_long(preset: str, piece: str) -> None:
    policy, started = policy_named(preset), time.thread_time()
    policy.apply(Memory("", piece * 20_000), typed=False)
    policy.apply(Memory("", "I live in the user's name must be first deadline " + piece * 2_000), typed=False)
    assert time.thread_time() - started < BACK_AND_FORTH
