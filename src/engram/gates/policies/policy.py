"""A policy: the rules, tried in their order on the beginning of a statement."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from engram.gates.policies.keys import filled
from engram.gates.policies.narrowing import ASIDE, Found, narrowed
from engram.gates.policies.rules import READ_CHARS, SlotRule, TypeRule, check_slot_rule, check_type_rule
from engram.model.errors import InvalidInput
from engram.model.memory import Memory

__all__ = ["OF_DOCUMENT", "READ_CHARS", "MemoryPolicy"]

_WORD = re.compile(r"[^\W_]+")
_ESCAPE_OR_SET = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.)*\]")
_NOT_LETTERS = re.compile(r"\\.|\(\?P")
OF_DOCUMENT = "@document:"
"""What stands between the conflict key of a fact and the document it was drawn from: one contract's term is not another's."""


@dataclass(frozen=True, slots=True)
class MemoryPolicy:
    """Rules that infer the type of a memory, pin it to a critical slot, and give it the key of what it replaces.

    Of several rules that fit, the first of its kind counts: write the special ones before the general. Making one checks
    every rule, and raises `InvalidInput` naming the rule that cannot be used.
    """

    name: str
    types: tuple[TypeRule, ...] = ()
    slots: tuple[SlotRule, ...] = ()
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
    def _of_checked(cls, name: str, types: Sequence[TypeRule], slots: Sequence[SlotRule]) -> "MemoryPolicy":
        """A policy of rules known to be good: nothing is compiled before a statement calls for it."""
        policy = object.__new__(cls)
        object.__setattr__(policy, "name", name)
        object.__setattr__(policy, "types", tuple(types))
        object.__setattr__(policy, "slots", tuple(slots))
        policy._index()
        return policy

    def _index(self) -> None:
        object.__setattr__(self, "_typing", _Rules(self.types))
        object.__setattr__(self, "_slotting", _Rules(self.slots))

    def applied(self, memory: Memory, *, typed: bool) -> Memory:
        """The memory with what the rules say about it; what it has of its own, and a type its caller named, stay."""
        text = " ".join(memory.statement[:READ_CHARS].replace("’", "'").split())
        changes: dict[str, Any] = {}
        kind = memory.type if typed else self._type(text) or memory.type
        if kind != memory.type:
            changes["type"] = kind
        # A part of the text has no other words: where no rule is worth trying for the whole, none is for it.
        open_to_rules = self._slotting.worth_trying(_words(text))
        wanted = [name for name in ("critical_slot", "conflict_key") if open_to_rules and not getattr(memory, name)]
        if "conflict_key" in wanted:
            changes |= narrowed(text, lambda said: self._slots(said, kind, wanted, text))
        elif wanted:
            changes |= self._slots(text, kind, wanted, text).values
        return memory.but(**changes) if changes else memory

    def reapplied(self, before: Memory, after: Memory, changes: Mapping[str, Any]) -> Memory:
        """A memory that says something else now, as the rules take it now; a key or slot its caller gave it stays."""
        if "statement" not in changes or {"conflict_key", "critical_slot"} & changes.keys():
            return after
        blank = {"conflict_key": "", "critical_slot": ""}
        key, of, document = before.conflict_key.partition(OF_DOCUMENT)
        taken = self.applied(before.but(**blank), typed=True)
        if (taken.conflict_key, taken.critical_slot) != (key, before.critical_slot):
            return after
        found = self.applied(after.but(**blank), typed=True)
        return found.but(conflict_key=f"{found.conflict_key}{of}{document}") if found.conflict_key else found

    def _type(self, text: str) -> str:
        lowered = text.lower()
        trying = self._typing.worth_trying(_words(text))
        found = next((at for at in trying if self._typing.fits(at, text, lowered)), None)
        return "" if found is None else self.types[found].type

    def _slots(self, text: str, kind: str, wanted: Sequence[str], whole: str) -> Found:
        """What the rules say of a text; of what forbids a rule, nothing may stand in the whole it is taken from."""
        lowered, forbidding = text.lower(), (whole, whole.lower())
        found: dict[str, str] = {}
        asides: list[tuple[int, int]] = []
        for at in self._slotting.worth_trying(_words(text)):
            rule = self.slots[at]
            missing = [name for name in wanted if name not in found and getattr(rule, name)]
            if not missing or (rule.types and kind not in rule.types):
                continue
            if match := self._slotting.fits(at, text, lowered, forbidding):
                values = {name: filled(getattr(rule, name), match) for name in missing}
                found |= {name: value for name, value in values.items() if value}
                asides += [match.span(name) for name in match.re.groupindex if name.startswith(ASIDE)]
            if len(found) == len(wanted):
                break
        return Found(found, tuple(asides))


def _words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


class _Rules:
    """Rules of one kind, ready to be looked up by the words of a statement; compiled when first tried."""

    __slots__ = ("by_word", "compiled", "rules", "unprompted")

    def __init__(self, rules: Sequence[TypeRule | SlotRule]) -> None:
        self.rules = rules
        self.compiled: list[tuple[_Looking, _Looking | None] | None] = [None] * len(rules)
        self.unprompted = [at for at, rule in enumerate(rules) if not rule.words]
        self.by_word: dict[str, list[int]] = {}
        for at, rule in enumerate(rules):
            for word in rule.words:
                self.by_word.setdefault(word, []).append(at)

    def worth_trying(self, words: set[str]) -> list[int]:
        """The places of the rules that a statement of these words can fit, in order."""
        found = set(self.unprompted)
        for word in self.by_word.keys() & words:
            found.update(self.by_word[word])
        return sorted(found)

    def fits(self, at: int, text: str, lowered: str, forbidding: tuple[str, str] | None = None) -> re.Match[str] | None:
        """Where the rule's pattern is found, unless what forbids it is found too: in the text, or in another given for it."""
        pattern, unless = self.compiled[at] or self._compile(at)
        match = pattern.find(lowered if pattern.in_lower_case else text)
        if match is None or (unless and unless.find((forbidding or (text, lowered))[unless.in_lower_case])):
            return None
        return match

    def _compile(self, at: int) -> "tuple[_Looking, _Looking | None]":
        rule = self.rules[at]
        made = (_looking(rule.pattern), _looking(rule.unless) if rule.unless else None)
        self.compiled[at] = made
        return made


class _Looking(NamedTuple):
    """How a pattern is looked for in a text."""

    find: Callable[[str], re.Match[str] | None]
    in_lower_case: bool


def _looking(pattern: str) -> _Looking:
    """The same finds, sooner: one that holds only at the beginning is not tried at every letter, and one without capitals
    is compared with the text in lower case, which costs a third of comparing regardless of case.
    """
    in_lower_case = _NOT_LETTERS.sub("", pattern).islower() and "(?-i:" not in pattern
    compiled = re.compile(pattern, 0 if in_lower_case else re.IGNORECASE)
    at_start = pattern.startswith("^") and not _has_choice(pattern)
    return _Looking(compiled.match if at_start else compiled.search, in_lower_case)


def _has_choice(pattern: str) -> bool:
    """Whether the whole pattern is a choice between several: a `|` outside every group and set."""
    bare = _ESCAPE_OR_SET.sub("", pattern)
    depth = 0
    for sign in bare:
        depth += (sign == "(") - (sign == ")")
        if sign == "|" and depth == 0:
            return True
    return False
