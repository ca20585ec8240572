"""The rules of a policy, and their validation."""

import re

from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.types import memory_type

__all__ = ["MAX_PATTERN_CHARS", "READ_CHARS", "SlotRule", "TypeRule", "check_slot_rule", "check_type_rule"]

# A longer pattern belongs in several rules, and is expensive to compile.
MAX_PATTERN_CHARS = 3_000
MAX_TEMPLATE_CHARS = 120
# A fact is a sentence or two: rules search no more than this.
READ_CHARS = 2_000
# Compiling a group recurses; extreme nesting would exhaust the C stack.
MAX_NESTING = 60

_ESCAPE_OR_SET = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]")
_GROUP = re.compile(r"\(\?P<(\w+)>")
_FIELD = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True, slots=True)
class TypeRule:
    """A statement that matches `pattern` and not `unless` has this type."""

    pattern: str
    type: str
    unless: str = ""
    words: tuple[str, ...] = ()
    """Lower-case words; a statement without any of them is not matched against the pattern."""
    vetted: bool = field(default=False, repr=False, compare=False)
    """Its patterns were tested against hostile texts, so Python's `re` runs them without a time limit."""

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
    """Lower-case words; a statement without any of them is not matched against the pattern."""
    vetted: bool = field(default=False, repr=False, compare=False)
    """Its patterns were tested against hostile texts, so Python's `re` runs them without a time limit."""

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
