"""Memory policies: their rules for the type and the slot of a statement, and the presets and custom policies by name."""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from engram.gates.policies.keys import ASIDE_GROUP, Applicability, RuleText, build_slot_values, fill_template
from engram.model.errors import InvalidInput, Refused
from engram.model.lazy import dataclass, field, fields
from engram.model.memory import Memory
from engram.model.types import memory_type
from engram.text.confusables import fold_text
from engram.text.words import hedge_pattern

__all__ = [
    "MAX_PATTERN_CHARS",
    "MAX_RULE_CHARS",
    "OF_DOCUMENT",
    "PRESETS",
    "MemoryPolicy",
    "PatternTimeout",
    "SlotRule",
    "TypeRule",
    "check_slot_rule",
    "check_type_rule",
    "chosen_policy",
    "custom_policies",
    "load_policy",
    "policy_named",
    "policy_problems",
]

# A longer pattern should be split into several rules, and is expensive to compile.
MAX_PATTERN_CHARS = 3_000
MAX_TEMPLATE_CHARS = 120
# A fact is a sentence or two, so rules search no more than this.
MAX_RULE_CHARS = 2_000
# Compiling a group recurses; extreme nesting would exhaust the C stack.
MAX_NESTING = 60

_ESCAPE_OR_SET = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]++|\\.)*+\]")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class TypeRule:
    """A statement that matches `pattern` and not `unless` has this type."""

    pattern: str
    type: str
    unless: str = ""
    words: tuple[str, ...] = ()
    """Lower-case words. A statement with none of them is not matched against the pattern."""
    vetted: bool = field(default=False, repr=False, compare=False)
    """Its patterns were tested against hostile texts, so they run in Python's `re` without a time limit."""

    def __post_init__(self) -> None:
        if not self.vetted:
            _check_patterns(self, "type rule")


@dataclass(frozen=True, slots=True)
class SlotRule:
    """A statement that matches `pattern` and not `unless` is critical, or replaces others, or both.

    `critical_slot` and `conflict_key` are templates over the pattern's named groups: `"allergy:{what}"`. A group `what2` is
    an alternative position of `what`, since a pattern can use a name only once.
    """

    pattern: str
    critical_slot: str = ""
    conflict_key: str = ""
    unless: str = ""
    types: tuple[str, ...] = ()
    """The types of memory it applies to; empty means all."""
    words: tuple[str, ...] = ()
    """Lower-case words. A statement with none of them is not matched against the pattern."""
    vetted: bool = field(default=False, repr=False, compare=False)
    """Its patterns were tested against hostile texts, so they run in Python's `re` without a time limit."""

    def __post_init__(self) -> None:
        if not self.vetted:
            _check_patterns(self, "slot rule")
            _check_templates(self, "slot rule")


def check_type_rule(rule: TypeRule, where: str) -> None:
    """Raise `InvalidInput`, naming the rule, if it is invalid. What its constructor checked is not checked again."""
    if rule.vetted:
        _check_patterns(rule, where)
    _check_type(rule.type, where)


def check_slot_rule(rule: SlotRule, where: str) -> None:
    """Raise `InvalidInput`, naming the rule, if it is invalid. What its constructor checked is not checked again."""
    if rule.vetted:
        _check_patterns(rule, where)
        _check_templates(rule, where)
    for name in rule.types:
        _check_type(name, where)


def nesting(pattern: str) -> int:
    """The deepest nesting of groups in a pattern."""
    depth = most = 0
    for sign in outside_sets(pattern):
        depth += (sign == "(") - (sign == ")")
        most = max(most, depth)
    return most


def outside_sets(pattern: str) -> str:
    """A pattern without escapes and character sets."""
    return _ESCAPE_OR_SET.sub("", pattern)


def _check_templates(rule: SlotRule, where: str) -> None:
    if not rule.critical_slot and not rule.conflict_key:
        raise InvalidInput(f"{where} has neither a critical_slot nor a conflict_key, so it has no effect")
    groups = [name.rstrip("0123456789") for name in _GROUP.findall(rule.pattern)]
    for name in ("critical_slot", "conflict_key"):
        _check_template(getattr(rule, name), groups, f"{where}: its {name}")


def _check_patterns(rule: TypeRule | SlotRule, where: str) -> None:
    if not rule.pattern:
        raise InvalidInput(f"{where} has no pattern")
    for name in ("pattern", "unless"):
        _check_pattern(getattr(rule, name), f"{where}: its {name}")
    if crooked := [word for word in rule.words if not word.isalnum() or word != word.lower()]:
        raise InvalidInput(f"{where}: words must be single lower-case words, not {crooked[0]!r}")


def _check_pattern(pattern: str, what: str) -> None:
    if not isinstance(pattern, str):
        raise InvalidInput(f"{what} must be a string, not {type(pattern).__name__}")
    if len(pattern) > MAX_PATTERN_CHARS:
        raise InvalidInput(f"{what} has {len(pattern)} characters (maximum {MAX_PATTERN_CHARS}); split the rule")
    try:
        re.compile(pattern, re.IGNORECASE)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidInput(f"{what} is not a regular expression: {error}: {pattern!r:.80}") from None
    if nesting(pattern) > MAX_NESTING:
        raise InvalidInput(f"{what} nests more than {MAX_NESTING} groups; split the rule: {pattern!r:.80}")


def _check_type(name: str, where: str) -> None:
    try:
        memory_type(name)
    except InvalidInput as error:
        raise InvalidInput(f"{where}: {error}") from None


def _check_template(template: str, groups: list[str], what: str) -> None:
    if len(template) > MAX_TEMPLATE_CHARS:
        raise InvalidInput(f"{what} has more than {MAX_TEMPLATE_CHARS} characters")
    for name in _FIELD.findall(template):
        if name not in groups:
            known = ", ".join(groups) or "none; write (?P<name>…)"
            raise InvalidInput(f"{what} names the group {name!r}, which the pattern does not have; it has: {known}")
    if set("{}") & set(_FIELD.sub("", template)):
        raise InvalidInput(f"{what}, {template!r}, has an unmatched brace; write {{group}}")


_NOT_LETTERS = re.compile(r"\\.|\(\?P")
PATTERN_SECONDS = 0.1
"""The time limit of one user-written pattern on one text; a reasonable pattern takes a thousandth of it."""
STATEMENT_SECONDS = 0.3
"""The time limit of all user-written patterns on one statement."""
OF_DOCUMENT = "@document:"
"""Separates a conflict key from the document it comes from, because a term of one contract does not replace another's."""


class PatternTimeout(Refused):
    """A user-written pattern took too long on a statement; nothing was stored."""


class _Stopwatch:
    """The time left for user-written patterns on one statement.

    A rule that runs out of time raises an error before a write. If `lenient`, for callers that only ask for the result
    of the rules, it is skipped.
    """

    __slots__ = ("_deadline", "_policy", "_spent", "lenient")

    def __init__(self, policy: str, *, lenient: bool) -> None:
        self._policy = policy
        self.lenient = lenient
        self._deadline = time.monotonic() + STATEMENT_SECONDS
        self._spent: set[str] = set()

    def find(self, looking: "_Matcher", text: RuleText) -> "re.Match[str] | None":
        """The first match of a pattern, or None. Raises `PatternTimeout`."""
        if not looking.limited:
            return looking.find(text.lowered if looking.in_lower_case else text.text)
        left = min(PATTERN_SECONDS, self._deadline - time.monotonic())
        try:
            if left > 0 and looking.pattern not in self._spent:
                return looking.find(text.text, timeout=left)
        except TimeoutError:
            self._spent.add(looking.pattern)
        raise PatternTimeout(
            f"policy {self._policy!r}: the pattern {looking.pattern!r:.80} takes too long on this statement "
            f"(more than {PATTERN_SECONDS:g} s, or {STATEMENT_SECONDS:g} s with the others); nothing was stored. Begin it with ^ "
            "or a word, bound its repeats, as in {0,5}, or remove the rule"
        )


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """Rules that infer the type of a memory, its critical slot, and the conflict key of what it replaces.

    Of several matching rules, the first of its kind counts, so put special rules before general ones. The constructor
    checks every rule, and raises `InvalidInput` naming the first invalid one.
    """

    name: str
    types: tuple[TypeRule, ...] = ()
    slots: tuple[SlotRule, ...] = ()
    trained: bool = False
    """If no rule matches, the trained model (`engram.models.statement_kinds`) gives the type and the critical slot,
    as in the presets."""
    _typing: "_Rules" = field(init=False, repr=False, compare=False)
    _slotting: "_Rules" = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.name:
            raise InvalidInput("a policy needs a name")
        object.__setattr__(self, "types", tuple(self.types))
        object.__setattr__(self, "slots", tuple(self.slots))
        for number, typing in enumerate(self.types, 1):
            check_type_rule(typing, f"policy {self.name!r}, type rule {number}")
        for number, slotting in enumerate(self.slots, 1):
            check_slot_rule(slotting, f"policy {self.name!r}, slot rule {number}")
        self._index()

    @classmethod
    def _of_checked(
        cls, name: str, types: Sequence[TypeRule], slots: Sequence[SlotRule], trained: bool
    ) -> "MemoryPolicy":
        """A policy of rules known to be valid; patterns are compiled on first use."""
        policy = object.__new__(cls)
        object.__setattr__(policy, "name", name)
        object.__setattr__(policy, "types", tuple(types))
        object.__setattr__(policy, "slots", tuple(slots))
        object.__setattr__(policy, "trained", trained)
        policy._index()
        return policy

    def _index(self) -> None:
        object.__setattr__(self, "_typing", _Rules(self.types))
        object.__setattr__(self, "_slotting", _Rules(self.slots))

    def apply(self, memory: Memory, *, typed: bool) -> Memory:
        """The memory with the type, slot and key of the rules.

        Its existing values, and a type given by its caller, are kept.

        Raises `PatternTimeout` if a user's pattern takes too long on the statement.
        """
        return self._apply_rules(memory, typed, _Stopwatch(self.name, lenient=False))

    def apply_leniently(self, memory: Memory, *, typed: bool) -> Memory:
        """Like `apply`, but a rule that takes too long is skipped; for callers that only read."""
        return self._apply_rules(memory, typed, _Stopwatch(self.name, lenient=True))

    def _apply_rules(self, memory: Memory, typed: bool, stopwatch: _Stopwatch) -> Memory:
        statement = fold_text(memory.statement[:MAX_RULE_CHARS])
        text = RuleText(" ".join(statement.replace("’", "'").split()))
        changes: dict[str, Any] = {}
        kind = memory.type if typed else self._type(text, stopwatch) or self._likely_type(text) or memory.type
        if kind != memory.type:
            changes["type"] = kind
        # A part of the text has no other words, so if no rule fits the whole, none fits the part.
        open_to_rules = self._slotting.candidate_rules(text.words)
        wanted = [name for name in ("critical_slot", "conflict_key") if open_to_rules and not getattr(memory, name)]
        if "conflict_key" in wanted:
            changes |= build_slot_values(text, lambda part: self._slots(part, kind, wanted, text, stopwatch))
        elif wanted:
            changes |= self._slots(text, kind, wanted, text, stopwatch).values
        if self.trained and not memory.critical_slot and not changes.get("critical_slot"):
            from engram.models.statement_kinds import critical_slot

            changes |= {"critical_slot": slot} if (slot := critical_slot(text.text)) else {}
        return memory.replace(**changes) if changes else memory

    def reapply(self, before: Memory, after: Memory, changes: Mapping[str, Any]) -> Memory:
        """A reworded memory with the slot and key of the rules; values given by its caller are kept."""
        if "statement" not in changes or {"conflict_key", "critical_slot"} & changes.keys():
            return after
        blank = {"conflict_key": "", "critical_slot": ""}
        key, of, document = before.conflict_key.partition(OF_DOCUMENT)
        taken = self.apply(before.replace(**blank), typed=True)
        if (taken.conflict_key, taken.critical_slot) != (key, before.critical_slot):
            return after
        found = self.apply(after.replace(**blank), typed=True)
        return found.replace(conflict_key=f"{found.conflict_key}{of}{document}") if found.conflict_key else found

    def _type(self, text: RuleText, stopwatch: _Stopwatch) -> str:
        trying = self._typing.candidate_rules(text.words)
        found = next((at for at in trying if self._typing.find_match(at, text, text, stopwatch)), None)
        return "" if found is None else self.types[found].type

    def _likely_type(self, text: RuleText) -> str:
        """The type by the trained model; "" for a question, and for a policy of rules alone."""
        if not self.trained or text.text.endswith("?"):
            return ""
        from engram.models.statement_kinds import type_of

        return type_of(text.text)[0]

    def _slots(
        self, text: RuleText, kind: str, wanted: Sequence[str], whole: RuleText, stopwatch: _Stopwatch
    ) -> Applicability:
        """The result of the rules for a text; the `unless` of a rule is searched in the whole statement."""
        found: dict[str, str] = {}
        asides: list[tuple[int, int]] = []
        for at in self._slotting.candidate_rules(text.words):
            rule = self.slots[at]
            missing = [name for name in wanted if name not in found and getattr(rule, name)]
            if not missing or (rule.types and kind not in rule.types):
                continue
            if match := self._slotting.find_match(at, text, whole, stopwatch):
                values = {name: fill_template(getattr(rule, name), match) for name in missing}
                found |= {name: value for name, value in values.items() if value}
                asides += [match.span(name) for name in match.re.groupindex if name.startswith(ASIDE_GROUP)]
            if len(found) == len(wanted):
                break
        return Applicability(found, tuple(asides))


class _Rules:
    """Rules of one kind, indexed by the words of a statement; a pattern is compiled when it is first needed."""

    __slots__ = ("by_word", "compiled", "rules", "unprompted")

    def __init__(self, rules: Sequence[TypeRule | SlotRule]) -> None:
        self.rules = rules
        self.compiled: dict[str, _Matcher] = {}
        self.unprompted = [at for at, rule in enumerate(rules) if not rule.words]
        self.by_word: dict[str, list[int]] = {}
        for at, rule in enumerate(rules):
            for word in rule.words:
                self.by_word.setdefault(word, []).append(at)

    def candidate_rules(self, words: frozenset[str]) -> list[int]:
        """The indexes of the rules that a statement with these words may match, in order."""
        found = set(self.unprompted)
        for word in words:
            if word in self.by_word:
                found.update(self.by_word[word])
        return sorted(found)

    def find_match(self, at: int, text: RuleText, whole: RuleText, stopwatch: _Stopwatch) -> re.Match[str] | None:
        """The match of a rule's pattern, unless its `unless` occurs in the whole statement."""
        rule = self.rules[at]
        try:
            match = stopwatch.find(self._matcher_of(rule.pattern, rule.vetted), text)
            if match is None or not rule.unless:
                return match
            return None if stopwatch.find(self._matcher_of(rule.unless, rule.vetted), whole) else match
        except PatternTimeout:
            if not stopwatch.lenient:
                raise
            return None

    def _matcher_of(self, pattern: str, vetted: bool) -> "_Matcher":
        if pattern not in self.compiled:
            self.compiled[pattern] = _compile_matcher(pattern, vetted)
        return self.compiled[pattern]


class _Matcher(NamedTuple):
    """How to search a pattern in a text."""

    pattern: str
    find: Callable[..., re.Match[str] | None]
    in_lower_case: bool
    limited: bool
    """Whether `find` takes a `timeout`."""


def _compile_matcher(pattern: str, vetted: bool) -> _Matcher:
    """A matcher that gives the same results faster.

    A pattern that only matches at the beginning is not tried at every letter. A pattern without capitals is compared
    with the lower-cased text, at a third of the cost of ignoring case.

    Python's matcher cannot be interrupted, so it runs only the patterns that come with Engram; `regex` runs those of a
    user.
    """
    in_lower_case = _NOT_LETTERS.sub("", pattern).islower() and "(?-i:" not in pattern
    compiled: Any = (
        re.compile(pattern, 0 if in_lower_case else re.IGNORECASE) if vetted else _compile_stoppable(pattern)
    )
    at_start = pattern.startswith("^") and not _has_choice(pattern)
    find = compiled.match if at_start else compiled.search
    return _Matcher(pattern, find, in_lower_case and vetted, limited=not vetted)


def _compile_stoppable(pattern: str) -> Any:
    import regex

    return regex.compile(pattern, regex.IGNORECASE | regex.VERSION0)


def _has_choice(pattern: str) -> bool:
    """Whether the pattern has alternatives at the top level: a `|` outside all groups and sets."""
    depth = 0
    for sign in outside_sets(pattern):
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and depth == 0:
            return True
    return False


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
    """The policy described by a table `[policies.NAME]` of `config.toml`; `extends` names a preset or one of `custom`."""
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

    A missing name may have been requested in code, so the error says where the policy would be defined and blames no
    file.
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
        # The rule's error does not include the rule's position.
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
