"""Policies by name, and those of `config.toml`."""

import tomllib
from pathlib import Path
from typing import Any

import pytest

from engram.gates.policies import (
    PRESETS,
    MemoryPolicy,
    TypeRule,
    chosen_policy,
    custom_policies,
    load_policy,
    policy_named,
    policy_problems,
)
from engram.model.errors import InvalidInput
from engram.model.memory import Memory
from engram.settings import Settings, load_settings, read_settings, save_setting
from tests.tables import table

WHERE = "/home/me/config.toml"


def tables(text: str) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(text)["policies"]
    return found


GOOD = r"""
[policies.shop]
extends = "coding_agent"
[[policies.shop.types]]
pattern = '\bprice list\b'
type = "project"
[[policies.shop.slots]]
pattern = 'the price of (?P<what>\w+) is'
conflict_key = "price:{what}"
unless = '\?'
types = ["fact", "project"]
words = ["price"]
[policies.outlet]
extends = "shop"
[[policies.outlet.types]]
pattern = 'price list'
type = "decision"
"""


def test_a_preset_and_one_of_your_own_are_found_by_name() -> None:
    mine = MemoryPolicy("mine", (TypeRule("x", "fact"),))
    assert policy_named("mine", {"mine": mine}) is mine
    assert [policy_named(name).name for name in PRESETS] == list(PRESETS)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(InvalidInput, match="unknown policy 'nope'; known: default, legal, coding_agent, mine"):
        policy_named("nope", {"mine": MemoryPolicy("mine")})


def test_own_rules_come_before_those_of_the_policy_extended() -> None:
    made = custom_policies(tables(GOOD))
    assert made["shop"].slots[1:] == policy_named("coding_agent").slots
    assert made["shop"].apply(Memory("", "Use the price list"), typed=False).type == "project"
    assert made["outlet"].apply(Memory("", "Use the price list"), typed=False).type == "decision"
    assert made["outlet"].apply(Memory("", "Use pnpm"), typed=False).conflict_key == "package_manager:js"
    priced = made["outlet"].apply(Memory("", "the price of Shoes is 5", type="fact"), typed=True)
    assert priced.conflict_key == "price:shoe"


def test_a_table_alone_can_be_loaded() -> None:
    policy = load_policy("bare", {"types": [{"pattern": "x", "type": "fact"}]})
    assert policy == MemoryPolicy("bare", (TypeRule("x", "fact"),))


MISTAKES = [
    ("[policies.p]\nextend = 'legal'", "policy 'p': unknown key 'extend'; known: extends, types, slots"),
    ("[policies.p]\nextends = 'nope'", "policy 'p' extends an unknown policy 'nope'"),
    ("[policies.p]\nextends = 'p'", "policy 'p' extends itself"),
    ("[policies.p]\nextends = 'q'\n[policies.q]\nextends = 'p'", "extends itself: p → q → p"),
    ("[policies.p]\nextends = 5", "policy 'p': extends must be the name of a policy, not 5"),
    ("[policies]\np = 5", "policy 'p' must be a table, [policies.p], not 5"),
    ("[policies.p]\ntypes = 5", "policy 'p': types must be tables, each under [[policies.p.types]]"),
    ("[[policies.p.types]]\npattern = 'a'", "policy 'p', type rule 1 has no type"),
    ("[[policies.p.types]]\ntype = 'fact'", "policy 'p', type rule 1 has no pattern"),
    ("[[policies.p.types]]\npattern = '('\ntype = 'fact'", "policy 'p', type rule 1: its pattern is not a regular"),
    ("[[policies.p.types]]\npattern = 'a'\ntype = 'fancy'", "policy 'p', type rule 1: unknown type 'fancy'"),
    ("[[policies.p.types]]\npattern = 5\ntype = 'fact'", "type rule 1: pattern must be a string, not 5"),
    ("[[policies.p.slots]]\npattern = 'a'\nslot = 'b'", "policy 'p', slot rule 1: unknown key 'slot'"),
    ("[[policies.p.slots]]\npattern = 'a'\nconflict_key = '{b}'", "slot rule 1: its conflict_key names the group 'b'"),
    ("[[policies.p.slots]]\npattern = 'a'\ncritical_slot = 'b'\ntypes = 'fact'", "types must be a list of strings"),
    ("[[policies.p.types]]\npattern = 'a'\ntype = 'fact'\nvetted = true", "type rule 1: unknown key 'vetted'"),
    ("[policies.legal]\nextends = 'default'", "policy 'legal' is a preset"),
]


@table(("text", "complaint"), MISTAKES)
def test_a_mistake_names_the_file_the_policy_and_the_rule(text: str, complaint: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        chosen_policy("default", tables(text), WHERE)
    assert str(refused.value).startswith(f"{WHERE}: ")
    assert complaint in str(refused.value)
    assert any(complaint in problem for problem in policy_problems("default", tables(text), WHERE))


def test_every_broken_policy_is_reported_and_the_unknown_choice_too() -> None:
    text = "[policies.a]\nextends = 'x'\n[policies.b]\nextends = 'y'\n[policies.c]\n"
    problems = policy_problems("nope", tables(text), WHERE)
    assert len(problems) == 3
    assert "unknown policy 'nope'; known: default, legal, coding_agent, a, b, c" in problems[0]
    assert policy_problems("legal", {}, WHERE) == []


def test_the_settings_hold_the_choice_and_the_tables(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'policy = "shop"\n{GOOD}')
    settings = load_settings(file)
    assert chosen_policy(settings.policy, settings.policies, str(file)).name == "shop"
    assert (Settings().policy, Settings().policies) == ("default", {})


@pytest.mark.parametrize("text", ["policies = 5\n", 'policy = ["legal"]\n'])
def test_a_setting_of_the_wrong_kind_is_named_with_its_line(tmp_path: Path, text: str) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"\n{text}")
    settings, problems = read_settings(file)
    assert settings == Settings()
    assert f"{file}:2: {text.split()[0]} takes" in problems[0]


def test_setting_one_value_leaves_the_tables_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    odd = GOOD.replace("'price list'", "'''\nbudget = 5\npolicy = x'''")
    file.write_text(f"# mine\nbudget = 900\n{odd}")
    save_setting(file, "budget", 800)
    save_setting(file, "policy", "shop")
    assert file.read_text() == f'# mine\nbudget = 800\n\npolicy = "shop"\n{odd.lstrip()}'
    assert load_settings(file).policy == "shop"
