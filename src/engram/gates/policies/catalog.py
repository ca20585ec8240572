"""Policies by name: the presets in this package and the tables in `config.toml`."""

import re
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from engram.gates.policies.policy import MemoryPolicy, SlotRule, TypeRule
from engram.model.errors import InvalidInput
from engram.model.lazy import fields
from engram.text.word_tables import hedge_pattern

__all__ = ["PRESETS", "chosen_policy", "custom_policies", "load_policy", "policy_named", "policy_problems"]

PRESETS = ("default", "legal", "coding_agent")
"""The policies that come with Engram."""

_KINDS: dict[str, type[TypeRule] | type[SlotRule]] = {"types": TypeRule, "slots": SlotRule}
_RULES = {TypeRule: "type rule", SlotRule: "slot rule"}
_KEYS = ("extends", *_KINDS)
_LISTS = ("types", "words")
_PART = re.compile(r"\{\{(\w+)\}\}")
_NO_POLICIES: Mapping[str, MemoryPolicy] = {}


def policy_named(name: str, custom: Mapping[str, MemoryPolicy] = _NO_POLICIES) -> MemoryPolicy:
    """The preset or custom policy of that name. Raises `InvalidInput`, listing the known ones."""
    if name in PRESETS:
        return _preset(name)
    if name in custom:
        return custom[name]
    raise InvalidInput(f"unknown policy {name!r}; known: {', '.join(dict.fromkeys((*PRESETS, *custom)))}")


def load_policy(name: str, table: Mapping[str, Any], custom: Mapping[str, MemoryPolicy] = _NO_POLICIES) -> MemoryPolicy:
    """The policy a table `[policies.NAME]` of `config.toml` describes; `extends` names a preset or one of `custom`."""
    if name in PRESETS:
        raise InvalidInput(f"policy {name!r} is a preset; use another name, with extends = {name!r}")
    if not isinstance(table, Mapping):
        raise InvalidInput(f"policy {name!r} must be a table, [policies.{name}], not {table!r:.60}")
    _refuse_unknown(table, _KEYS, f"policy {name!r}")
    base = _base(name, table, custom)
    own = MemoryPolicy(name, _rules(name, table, "types"), _rules(name, table, "slots"))
    return (
        own
        if base is None
        else MemoryPolicy._of_checked(name, own.types + base.types, own.slots + base.slots, base.trained)
    )


def custom_policies(tables: Mapping[str, Any], where: str = "config.toml") -> dict[str, MemoryPolicy]:
    """Every policy in `config.toml`, in any order of `extends`; `where` names the file in errors."""
    made: dict[str, MemoryPolicy] = {}
    for name in tables:
        _make(name, tables, made, (), where)
    return made


def chosen_policy(name: str, tables: Mapping[str, Any], where: str = "config.toml") -> MemoryPolicy:
    """The policy of that name among the presets and the tables of `config.toml`, each of which must be usable.

    Who asks for one that is not there may have done so in code: the error says where it would have to be, and blames no file.
    """
    custom = custom_policies(tables, where)
    try:
        return policy_named(name, custom)
    except InvalidInput as error:
        raise InvalidInput(f"{error}; define it as [policies.{name}] in {where}") from None


def policy_problems(name: str, tables: Mapping[str, Any], where: str = "config.toml") -> list[str]:
    """The distinct problems of the policies in `config.toml` and of the chosen name."""
    known = dict.fromkeys((*PRESETS, *tables))
    problems = [] if name in known else [f"{where}: unknown policy {name!r}; known: {', '.join(known)}"]
    problems += [_problem(partial(_make, wanted, tables, {}, (), where)) for wanted in tables]
    return [problem for problem in dict.fromkeys(problems) if problem]


def _problem(trial: Callable[[], object]) -> str:
    try:
        trial()
    except InvalidInput as error:
        return str(error)
    return ""


def _make(
    name: str, tables: Mapping[str, Any], made: dict[str, MemoryPolicy], extending: tuple[str, ...], where: str
) -> MemoryPolicy:
    """The policy of a table, after making those it extends."""
    if name in extending:
        raise InvalidInput(f"{where}: policy {name!r} extends itself: {' → '.join((*extending, name))}")
    if name not in made:
        table = tables[name]
        base = table.get("extends") if isinstance(table, Mapping) else None
        if isinstance(base, str) and base in tables and base not in PRESETS:
            _make(base, tables, made, (*extending, name), where)
        try:
            made[name] = load_policy(name, table, made)
        except InvalidInput as error:
            raise InvalidInput(f"{where}: {error}") from None
    return made[name]


def _base(name: str, table: Mapping[str, Any], custom: Mapping[str, MemoryPolicy]) -> MemoryPolicy | None:
    if "extends" not in table:
        return None
    if table["extends"] == name:
        raise InvalidInput(f"policy {name!r} extends itself")
    if not isinstance(table["extends"], str):
        raise InvalidInput(f"policy {name!r}: extends must be the name of a policy, not {table['extends']!r:.60}")
    try:
        return policy_named(table["extends"], custom)
    except InvalidInput as error:
        raise InvalidInput(f"policy {name!r} extends an {error}") from None


def _rules(name: str, table: Mapping[str, Any], part: str) -> tuple[Any, ...]:
    rows = table.get(part, [])
    if not isinstance(rows, list) or not all(isinstance(row, Mapping) for row in rows):
        raise InvalidInput(f"policy {name!r}: {part} must be tables, each under [[policies.{name}.{part}]]")
    what = f"policy {name!r}, {part.removesuffix('s')} rule"
    return tuple(_rule(_KINDS[part], row, f"{what} {number}") for number, row in enumerate(rows, 1))


def _rule(kind: type[TypeRule] | type[SlotRule], row: Mapping[str, Any], where: str) -> TypeRule | SlotRule:
    known = [field.name for field in fields(kind) if field.name != "vetted"]
    _refuse_unknown(row, known, where)
    for key in ("pattern", "type") if kind is TypeRule else ("pattern",):
        if key not in row:
            raise InvalidInput(f"{where} has no {key}")
    values = {key: _check_value(key, value, where) for key, value in row.items()}
    try:
        return kind(**values)
    except InvalidInput as error:
        # The rule's error does not know the rule's position.
        raise InvalidInput(f"{where}{str(error).removeprefix(_RULES[kind])}") from None


def _check_value(key: str, value: Any, where: str) -> Any:
    if key not in _LISTS:
        if not isinstance(value, str):
            raise InvalidInput(f"{where}: {key} must be a string, not {value!r:.60}")
        return value
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InvalidInput(f"{where}: {key} must be a list of strings, not {value!r:.60}")
    return tuple(value)


def _refuse_unknown(table: Mapping[str, Any], known: "list[str] | tuple[str, ...]", where: str) -> None:
    for key in table:
        if key not in known:
            raise InvalidInput(f"{where}: unknown key {key!r}; known: {', '.join(known)}")


@lru_cache(maxsize=len(PRESETS))
def _preset(name: str) -> MemoryPolicy:
    import tomllib

    file = tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))
    parts = {"hedge": hedge_pattern("guess", "possible")}
    for part, text in file["parts"].items():
        parts[part] = _expand_parts(text, parts)
    types = [TypeRule(**_preset_row(row, parts), vetted=True) for row in file["types"]]
    slots = [SlotRule(**_preset_row(row, parts), vetted=True) for row in file["slots"]]
    return MemoryPolicy._of_checked(name, types, slots, trained=True)


def _preset_row(row: Mapping[str, Any], parts: Mapping[str, str]) -> dict[str, Any]:
    """A row of a preset: `{{part}}` is replaced by a shared pattern, and lists are split at spaces."""
    values: dict[str, Any] = {key: _expand_parts(value, parts) for key, value in row.items() if isinstance(value, str)}
    return values | {key: tuple(values[key].split()) for key in _LISTS if key in values}


def _expand_parts(text: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda part: parts[part[1]], text) if "{{" in text else text
