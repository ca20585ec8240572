"""docs/policies.md tells what the presets do: every row holds, every rule has a row, the configuration can be used."""

import re
import tomllib
from pathlib import Path

import pytest

from engram.gates.policies import PRESETS, chosen_policy, policy_named
from engram.gates.policies.policy import MAX_PATTERN_CHARS, MAX_RULE_CHARS
from engram.model.memory import Memory

PAGE = (Path(__file__).parents[3] / "docs" / "policies.md").read_text("utf-8")


def section(preset: str) -> str:
    return PAGE.split(f"\n### {preset}\n")[1].split("\n#")[0]


def table(preset: str) -> list[tuple[str, str, str]]:
    lines = [line.strip("| ").split(" | ") for line in section(preset).splitlines() if line.startswith("| ")]
    return [(said, slot.strip("`–"), key.strip("`–")) for said, slot, key in lines[1:]]


@pytest.mark.parametrize("preset", PRESETS)
def test_every_row_is_what_the_preset_says(preset: str) -> None:
    policy = policy_named(preset)
    found = [(said, policy.apply(Memory("", said), typed=False)) for said, _, _ in table(preset)]
    assert [(said, memory.critical_slot, memory.conflict_key) for said, memory in found] == table(preset)


@pytest.mark.parametrize("preset", PRESETS)
def test_every_slot_rule_has_a_row_that_it_fits(preset: str) -> None:
    said = [row[0] for row in table(preset)]
    unshown = [
        (rule.critical_slot, rule.conflict_key)
        for rule in policy_named(preset).slots
        if not any(re.search(rule.pattern, statement, re.IGNORECASE) for statement in said)
    ]
    assert unshown == []


@pytest.mark.parametrize("preset", PRESETS)
def test_the_types_of_a_preset_are_named_in_their_order(preset: str) -> None:
    named = re.search(r"Types: ([\w, ]+)\.", section(preset))
    assert named is not None
    assert named[1].split(", ") == list(dict.fromkeys(rule.type for rule in policy_named(preset).types))


def test_the_configuration_shown_can_be_used() -> None:
    shown = re.search(r"^```toml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    assert shown is not None
    given = tomllib.loads(shown[1])
    policy = chosen_policy(given["policy"], given["policies"])
    assert policy.apply(Memory("", "the price of Red Shoes is 5"), typed=False).conflict_key == "price:red_shoe"


def test_the_limits_are_told() -> None:
    assert f"first {MAX_RULE_CHARS:,} characters" in PAGE
    assert f"at most {MAX_PATTERN_CHARS:,}" in PAGE
