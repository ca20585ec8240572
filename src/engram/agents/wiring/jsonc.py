"""Changes one member of a JSON file with comments; every other byte stays as it is.

The text is scanned once for the members of its objects. Comments and trailing commas are allowed.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from engram.model.errors import InvalidInput, UnreadableData
from engram.model.lazy import dataclass, field
from engram.readers.data import MAX_DEPTH, parse_json, parse_json_at

_BLANK = re.compile(r"(?:[ \t\r\n\ufeff]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_ATOM = re.compile(r"[^\s,:\[\]{}\"/]+")
_REMARK = re.compile(r"[ \t]*(?://[^\r\n]*|/\*[^\r\n]*?\*/[ \t]*(?=\r?\n))")
"""A comment after a member, up to the end of the line."""
_COMMENT = re.compile(r"//|/\*")
_LINE_COMMENT = re.compile(r"(?>[\s,]+|//[^\n]*\n|/\*.*?\*/)*+//[^\n]*", re.DOTALL)
"""Blanks and comments, of which the last is a comment up to the end of the line."""
_LINE_END = re.compile(r"[ \t]*\r?\n")


@dataclass(slots=True)
class JsonValue:
    """A value in a text, its position and, for an object, its members."""

    start: int
    end: int
    data: Any
    members: "dict[str, JsonMember]" = field(default_factory=dict)


@dataclass(slots=True)
class JsonMember:
    """A member of an object: the position of its key, and its value."""

    start: int
    value: JsonValue


def parse(text: str) -> JsonValue:
    """Parse a text. Raises `InvalidInput`, naming the line, if it is not JSON with comments."""
    scanner = _Scanner(text)
    found = scanner.value(_skip(text, 0), 0)
    if _skip(text, found.end) != len(text):
        scanner.fail(found.end)
    return found


def with_member(text: str, path: Sequence[str], data: Any) -> str:
    """The text with the member at a path of keys set; missing objects are created. An empty text is an empty object."""
    if not text.strip(" \t\r\n\ufeff"):
        text = "{}\n"
    here, depth = parse(text), 0
    if not isinstance(here.data, dict):
        raise InvalidInput("the file does not contain a JSON object")
    while depth < len(path) - 1 and path[depth] in here.members:
        here = here.members[path[depth]].value
        depth += 1
        if not isinstance(here.data, dict):
            raise InvalidInput(f"`{'.'.join(path[:depth])}` is not an object")
    for key in reversed(path[depth + 1 :]):
        data = {key: data}
    known = here.members.get(path[depth])
    indent = _indent_of(text)
    if known is not None:
        written = _render_json(data, indent, depth + 1, _newline(text))
        return text[: known.value.start] + written + text[known.value.end :]
    return _add_member(text, here, path[depth], data, depth, indent)


def with_member_of(text: str, path: Sequence[str], other: str) -> str:
    """The text with its member at a path replaced by another text's, comments included; both must have it."""
    place, wanted = parse(text), parse(other)
    for key in path:
        place, wanted = place.members[key].value, wanted.members[key].value
    return text[: place.start] + other[wanted.start : wanted.end] + text[place.end :]


def without_member(text: str, path: Sequence[str]) -> str:
    """The text without the member at a path, and without objects that become empty; unchanged if the member is missing.

    An object with a comment stays, because somebody wrote the comment.
    """
    is_emptied = False
    while path:
        chain = [parse(text)]
        for key in path:
            if key not in chain[-1].members:
                return text
            chain.append(chain[-1].members[key].value)
        owner = chain[-2]
        member = owner.members[path[-1]]
        after = _skip(text, member.value.end)
        end = after if text[after : after + 1] == "," else member.value.end
        if is_emptied and _COMMENT.search(text, member.start, end):
            return text
        text, is_emptied = _remove_member(text, owner, path[-1]), True
        if len(owner.members) > 1:
            return text
        path = path[:-1]
    return text


def _add_member(text: str, owner: JsonValue, key: str, data: Any, depth: int, indent: str) -> str:
    newline = _newline(text)
    member = f"{newline}{indent * (depth + 1)}{json.dumps(key)}: {_render_json(data, indent, depth + 1, newline)}"
    if not owner.members:
        inside = text[owner.start + 1 : owner.end - 1].rstrip()
        return text[: owner.start + 1] + inside + member + f"{newline}{indent * depth}" + text[owner.end - 1 :]
    last = max(one.value.end for one in owner.members.values())
    after = _skip(text, last)
    comma = ","
    if text[after : after + 1] == ",":
        last, comma, member = after + 1, "", f"{member},"
    # A comment on the same line belongs to the member before it.
    rest = _REMARK.match(text, last)
    end = rest.end() if rest else last
    return f"{text[:last]}{comma}{text[last:end]}{member}{text[end:]}"


def _remove_member(text: str, owner: JsonValue, key: str) -> str:
    member = owner.members[key]
    earlier = [one.value.end for one in owner.members.values() if one.value.end < member.start]
    gap = text[max(earlier, default=owner.start + 1) : member.start]
    start, end = member.start - (len(gap) - len(gap.rstrip(" \t\r\n"))), member.value.end
    after = _skip(text, end)
    if text[after : after + 1] == ",":
        end = after + 1
    elif earlier and text[comma := _skip(text, max(earlier))] == ",":
        text = text[:comma] + text[comma + 1 :]
        start, end = start - 1, end - 1
    if len(owner.members) == 1 and not gap.strip():
        end += len(text[end:]) - len(text[end:].lstrip(" \t\r\n"))
    elif _LINE_COMMENT.fullmatch(gap.rstrip(" \t\r\n,")) and not _LINE_END.match(text, end):
        return f"{text[:start]}{_newline(text)}{text[end:].lstrip(' ')}"
    return text[:start] + text[end:]


def _render_json(data: Any, indent: str, depth: int, newline: str) -> str:
    lines = json.dumps(data, indent=indent, ensure_ascii=False).split("\n")
    return (newline + indent * depth).join(lines)


def _indent_of(text: str) -> str:
    found = re.match(r"[\s\ufeff]*+\{(?:\s*+//[^\n]*+|\s*+/\*.*?\*/)*+[ \t]*\r?\n([ \t]+)\"", text, re.DOTALL)
    return found[1] if found else "  "


def _newline(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _skip(text: str, place: int) -> int:
    found = _BLANK.match(text, place)
    return found.end() if found else place


class _Scanner:
    """Reads values and records their positions."""

    def __init__(self, text: str) -> None:
        self.text = text

    def fail(self, place: int) -> None:
        line = self.text.count("\n", 0, place) + 1
        raise InvalidInput(f"line {line} is not valid JSON")

    def value(self, place: int, depth: int) -> JsonValue:
        """The value at a position."""
        if depth > MAX_DEPTH:
            self.fail(place)
        match self.text[place : place + 1]:
            case "{":
                return self._object(place, depth)
            case "[":
                return self._array(place, depth)
        found = _STRING.match(self.text, place) or _ATOM.match(self.text, place)
        try:
            return JsonValue(place, found.end(), parse_json(found[0], characters="any")) if found else self._bad(place)
        except UnreadableData:
            return self._bad(place)

    def _bad(self, place: int) -> JsonValue:
        self.fail(place)
        raise AssertionError

    def _object(self, start: int, depth: int) -> JsonValue:
        found = JsonValue(start, start, {})
        place = _skip(self.text, start + 1)
        while self.text[place : place + 1] != "}":
            key = _STRING.match(self.text, place)
            colon = _skip(self.text, key.end()) if key else place
            if key is None or self.text[colon : colon + 1] != ":":
                self.fail(place)
                break
            value = self.value(_skip(self.text, colon + 1), depth + 1)
            name = self.value(place, depth + 1).data
            found.data[name] = value.data
            found.members[name] = JsonMember(place, value)
            place = self._next(value.end, "}")
        found.end = place + 1
        return found

    def _array(self, start: int, depth: int) -> JsonValue:
        # Members of a list are never changed, so the fast parser can read a list without comments.
        with suppress(UnreadableData):
            data, end = parse_json_at(self.text, start)
            return JsonValue(start, end, data)
        found = JsonValue(start, start, [])
        place = _skip(self.text, start + 1)
        while self.text[place : place + 1] != "]":
            value = self.value(place, depth + 1)
            found.data.append(value.data)
            place = self._next(value.end, "]")
        found.end = place + 1
        return found

    def _next(self, place: int, closing: str) -> int:
        """The position of the next member or of the closing bracket."""
        place = _skip(self.text, place)
        mark = self.text[place : place + 1]
        if mark == ",":
            return _skip(self.text, place + 1)
        if mark != closing:
            self.fail(place)
        return place
