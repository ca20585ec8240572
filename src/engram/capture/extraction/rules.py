"""The rules, from the tables beside this file: how a clause must read, what it then is, how sure that is, how it is put down.

A pattern fits the whole clause, greetings and asides taken off. The first rule that fits decides.
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.capture.extraction.doubts import OVER, PASSING, POINTING
from engram.capture.extraction.rendering import RENDERINGS, Rendering
from engram.gates.tables import phrases

TABLES = ("changes", "sayings", "limits", "tastes", "things")
"""In the order they are tried."""

EXPLICIT = 0.95
"""The person said outright that it is to hold."""
CLEAR = 0.85
PLAIN = 0.7
"""DESIGN §10: from .70 on, implied."""

_CONFIDENCE = {"explicit": EXPLICIT, "clear": CLEAR, "plain": PLAIN}
# A change names its moment, and the moment is past; what it changed still holds.
_DESPITE = {"": frozenset[str](), "changed": frozenset((PASSING, OVER)), "pointing": frozenset((POINTING,))}
_PART = re.compile(r"\{\{(\w+)\}\}")
# They stand before a command and are none.
_NO_COMMANDS = frozenset(("mind", "never", "always", "do", "don't"))


@dataclass(frozen=True, slots=True)
class Rule:
    """A way of saying something that lasts."""

    name: str
    pattern: re.Pattern[str]
    type: str
    """ "fact" where the policy at hand may name a closer one."""
    confidence: float
    render: Rendering
    role: str = "user"
    """Whose turns it is for; "any" for both."""
    despite: frozenset[str] = frozenset()
    """The doubts that do not count against it."""


@lru_cache(maxsize=1)
def rules() -> tuple[Rule, ...]:
    """Every rule, in the order they are tried; compiled when a conversation first comes in."""
    shared = _spelled_out(_table("parts"), {"verbs": _verbs()})
    return tuple(rule for name in TABLES for rule in _rules_of(_table(name), shared))


def _rules_of(table: Mapping[str, Any], shared: Mapping[str, str]) -> list[Rule]:
    parts = _spelled_out(table["parts"], shared)
    return [_rule(row, parts) for row in table["rules"]]


def _rule(row: Mapping[str, str], parts: Mapping[str, str]) -> Rule:
    return Rule(
        row["name"],
        re.compile(rf"(?:{_filled(row['pattern'], parts)})\Z", re.IGNORECASE),
        row["type"],
        _CONFIDENCE[row.get("confidence", "clear")],
        RENDERINGS[row["render"]],
        row.get("role", "user"),
        _DESPITE[row.get("despite", "")],
    )


def _spelled_out(given: Mapping[str, str], known: Mapping[str, str]) -> dict[str, str]:
    """The known parts and the given ones, each of which may name those before it."""
    parts = dict(known)
    for name, text in given.items():
        parts[name] = _filled(text, parts)
    return parts


def _filled(text: str, parts: Mapping[str, str]) -> str:
    return _PART.sub(lambda part: parts[part[1]], text)


def _table(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / f"{name}.toml").read_text("utf-8"))


def _verbs() -> str:
    """The verbs a command may open with, as a pattern."""
    return "|".join(sorted(phrases("imperatives.txt", "imperative").words - _NO_COMMANDS))
