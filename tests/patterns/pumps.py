"""Texts that make a regular expression go back and forth, made from its own parts."""

import re
from collections.abc import Iterator, Sequence
from re import _constants as op  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any, NamedTuple

COMMON = (
    " ", "\t", "\n", "a", "A", "0", "-", ".", "_", "/", "`", "'", '"', "(", "[", "{", "<", "*", "@", ":", "=", ",", "é", "漢", "a ",
    "a\n", " \n", "0 ", "0.", "0,", "a.", "a-", "a@", "A. ", "Aa ", "<!--", "```\n", "http://", "كلمة السر ",
)  # fmt: skip
"""What any text may repeat."""
PROBES = " \t\na0A-._/'\":=,(<@é漢"
"""Letters that are tried for a set, besides the first one it has."""
MAX_PUMPS = 48
"""Texts from one pattern's own parts."""
MAX_BRANCHES = 6
"""Alternatives of a group that are followed."""


class Pump(NamedTuple):
    """A text of any length: a beginning, what is repeated, and an end at which no match succeeds."""

    before: str
    piece: str
    after: str

    def text(self, size: int) -> str:
        """About `size` characters."""
        return self.before + self.piece * (size // len(self.piece) + 1) + self.after


def pumps(source: str, flags: int) -> list[Pump]:
    """The pumps for a pattern: common pieces, then what its own parts match."""
    own: dict[Pump, None] = {}
    try:
        parts = list(parser.parse(source, flags))
    except re.error:  # a pattern of the `regex` module
        parts = []
    for pump in _pumps(parts, ""):
        own.setdefault(pump)
        if len(own) >= MAX_PUMPS:
            break
    return [*(Pump("", piece, "\x00") for piece in COMMON), *own]


def _pumps(nodes: Sequence[Any], before: str) -> Iterator[Pump]:
    """The pumps of a sequence: at every repetition in it, and of every beginning of it."""
    for number, node in enumerate(nodes):
        yield from _pumps_in(node, before)
        before += _example(node)
        if (before and number < len(nodes) - 1) or number == 0:
            for piece in {before, f"{before} ", f"{before}\n"} - {""}:
                yield Pump("", piece, "\x00")


def _pumps_in(node: Any, before: str) -> Iterator[Pump]:
    kind, value = node
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        _, most, body = value
        if most > 9:
            for piece in _examples(body):
                yield Pump(before, piece, "\x00")
                yield Pump("", before + piece, "\x00")
        yield from _pumps(list(body), before)
    elif kind is op.SUBPATTERN:
        yield from _pumps(list(value[-1]), before)
    elif kind is op.ATOMIC_GROUP:
        yield from _pumps(list(value), before)
    elif kind in (op.ASSERT, op.ASSERT_NOT):
        yield from _pumps(list(value[1]), before)
    elif kind is op.BRANCH:
        branches = value[1]
        step = max(1, len(branches) // MAX_BRANCHES)
        for branch in branches[::step]:
            yield from _pumps(list(branch), before)


def _examples(body: Sequence[Any]) -> list[str]:
    """Texts that a repeated part matches; several for a set."""
    if len(body) == 1 and body[0][0] in (op.IN, op.ANY, op.NOT_LITERAL):
        found = [char for char in PROBES if _fits(body[0], char)]
        return list(dict.fromkeys((*found[:4], _example(body[0])))) if found else [_example(body[0]) or "a"]
    whole = "".join(map(_example, body))
    return [whole] if whole else []


def _example(node: Any) -> str:
    """A short text that a part matches."""
    kind, value = node
    if kind is op.LITERAL:
        return chr(value)
    if kind in (op.IN, op.ANY, op.NOT_LITERAL):
        return next((char for char in "a0 -.\n" if _fits(node, char)), _first_of(node))
    if kind in (op.MAX_REPEAT, op.MIN_REPEAT, op.POSSESSIVE_REPEAT):
        least, _, body = value
        return "".join(map(_example, body)) * min(max(int(least), 1), 64)
    if kind is op.SUBPATTERN:
        return "".join(map(_example, value[-1]))
    if kind is op.ATOMIC_GROUP:
        return "".join(map(_example, value))
    if kind is op.BRANCH:
        return "".join(map(_example, value[1][0]))
    return ""


def _fits(node: Any, char: str) -> bool:
    kind, value = node
    if kind is op.ANY:
        return char != "\n"
    if kind is op.NOT_LITERAL:
        return bool(ord(char) != value)
    negated = bool(value) and value[0][0] is op.NEGATE
    return any(_is_member(one, char) for one in value[negated:]) is not negated


def _is_member(member: Any, char: str) -> bool:
    kind, value = member
    if kind is op.LITERAL:
        return bool(ord(char) == value)
    if kind is op.RANGE:
        return bool(value[0] <= ord(char) <= value[1])
    return bool(re.match(_CATEGORIES[value], char))


_CATEGORIES = {
    op.CATEGORY_DIGIT: r"\d",
    op.CATEGORY_NOT_DIGIT: r"\D",
    op.CATEGORY_SPACE: r"\s",
    op.CATEGORY_NOT_SPACE: r"\S",
    op.CATEGORY_WORD: r"\w",
    op.CATEGORY_NOT_WORD: r"\W",
}


def _first_of(node: Any) -> str:
    """The first letter of a set that none of the usual ones is in."""
    for kind, value in node[1] if node[0] is op.IN else ():
        if kind is op.LITERAL:
            return chr(value)
        if kind is op.RANGE:
            return chr(value[0])
    return ""
