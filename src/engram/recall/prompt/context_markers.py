"""Engram's block in somebody's own file: where it is, and the text with the block put in, replaced or taken out.

Everything outside of the markers stays as it is, byte for byte.
"""

import re
from collections.abc import Collection, Sequence

from engram.model.errors import Refused
from engram.model.lazy import dataclass
from engram.recall.prompt.context_block import NOTHING, signature
from engram.text.markup import strip_code_spans

BEGIN, END = "<!-- engram:begin -->", "<!-- engram:end -->"
_MARKER = re.compile(r"<!--[ \t]*engram:(begin|end)[ \t]*-->")
_INDENTED = re.compile(r" {4}| {0,3}\t")
"""A line of an indented code block, in which a marker is only shown."""
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
MAX_NAMED = 20
"""Markers that an error names."""
_TITLE = re.compile(r"\*\*[^*]+\*\*")
_SIGNATURE = re.compile(r"\((?:disputed, )?([^\s()]+)\)")


@dataclass(frozen=True, slots=True)
class MarkedLines:
    """The lines of a block, counted from 0; both markers are part of it."""

    first: int
    last: int


def find_block(text: str, name: str) -> MarkedLines | None:
    """Where the block is; None if there is none. Raises `Refused`, naming the lines, for markers that do not form one block."""
    found = _markers(text.split("\n"), name)
    kinds = [kind for _, kind in found]
    if kinds == ["begin", "end"]:
        return MarkedLines(found[0][0], found[1][0])
    if not found:
        return None
    raise Refused(f"{name}: {_problem(found)}; nothing was written. Leave one `{BEGIN}` with one `{END}` below it")


def _markers(lines: Sequence[str], name: str) -> list[tuple[int, str]]:
    found: list[tuple[int, str]] = []
    examples = _example_lines(lines)
    for number, line in enumerate(lines):
        if "engram:" not in line or number in examples or _INDENTED.match(line):
            continue
        if whole := _MARKER.fullmatch(line.strip(" \t\r")):
            found.append((number, whole[1]))
        elif _MARKER.search(strip_code_spans(line)):
            raise Refused(
                f"{name}: line {number + 1} has a marker and other text; nothing was written. "
                "A marker needs a line of its own"
            )
    return found


def _problem(found: Sequence[tuple[int, str]]) -> str:
    begins = [number + 1 for number, kind in found if kind == "begin"]
    ends = [number + 1 for number, kind in found if kind == "end"]
    if len(begins) > 1 or len(ends) > 1:
        named = ", ".join(f"{kind} at line {number + 1}" for number, kind in found[:MAX_NAMED])
        further = f" and {len(found) - MAX_NAMED:,} more" if len(found) > MAX_NAMED else ""
        return f"more than one block: {named}{further}"
    if not ends:
        return f"line {begins[0]} begins a block that never ends"
    if not begins:
        return f"line {ends[0]} ends a block that never begins"
    return f"the end at line {ends[0]} comes before the beginning at line {begins[0]}"


def _example_lines(lines: Sequence[str]) -> set[int]:
    """The numbers of the lines in fenced code blocks that are closed: there, a marker is only shown."""
    found: set[int] = set()
    fence, opened = "", 0
    for number, line in enumerate(lines):
        after = _fence_after(fence, line)
        if fence and not after:
            found.update(range(opened + 1, number))
        elif after and not fence:
            opened = number
        fence = after
    return found


def _fence_after(fence: str, line: str) -> str:
    """The fence that is open after a line; "" for none."""
    found = _FENCE.match(line)
    if found is None:
        return fence
    if not fence:
        return found[1]
    closes = found[1].startswith(fence) and not line[found.end() :].strip()
    return "" if closes else fence


def newline_of(text: str) -> str:
    """The line ending of most lines."""
    windows = text.count("\r\n")
    return "\r\n" if windows * 2 > text.count("\n") else "\n"


def with_block(text: str, block: Sequence[str], name: str) -> str:
    """The text with the block in place of the one it has, or at its end."""
    newline = newline_of(text)
    made = newline.join((BEGIN, *block, END))
    place = find_block(text, name)
    if place is not None:
        return _replace_block(text, place, made)
    if not text:
        return f"{made}{newline}"
    # A file without a final newline stays without one: so both can be undone exactly.
    return f"{text}{newline}{made}{newline}" if text.endswith("\n") else f"{text}{newline * 2}{made}"


def without_block(text: str, name: str) -> str:
    """The text without its block, and without the line ends that set it apart."""
    place = find_block(text, name)
    if place is None:
        return text
    lines = text.split("\n")
    before, after = lines[: place.first], lines[place.last + 1 :]
    if before and not before[-1].strip() and (not after or not after[0].strip()):
        gap = before.pop()
        if before and not after and gap == "\r":
            before[-1] = before[-1].removesuffix("\r")
    return "\n".join([*before, *after])


def without_memories(text: str, ids: Collection[str], name: str) -> str:
    """The text without the lines of these memories in its block."""
    place = find_block(text, name)
    if place is None or not ids:
        return text
    endings = tuple({ending for i in ids for ending in (signature(i), f" {signature(i)[1:]}")})
    lines = text.split("\n")
    inside = [line.rstrip("\r") for line in lines[place.first + 1 : place.last]]
    left = [line for line in inside if not (line.startswith("- ") and line.endswith(endings))]
    if left == inside:
        return text
    return _replace_block(text, place, newline_of(text).join((BEGIN, *_drop_empty_titles(left), END)))


def quoted_ids(text: str, name: str) -> list[str]:
    """The memories that the lines of the block name."""
    place = find_block(text, name)
    inside = text.split("\n")[place.first + 1 : place.last] if place is not None else []
    return [found[1] for line in inside if (found := _signature_of(line.rstrip("\r")))]


def _signature_of(line: str) -> re.Match[str] | None:
    return _SIGNATURE.fullmatch(line, max(2, line.rfind("("))) if line.startswith("- ") else None


def _replace_block(text: str, place: MarkedLines, made: str) -> str:
    lines = text.split("\n")
    ending = "\r" if lines[place.last].endswith("\r") else ""
    return "\n".join([*lines[: place.first], made + ending, *lines[place.last + 1 :]])


def _drop_empty_titles(lines: Sequence[str]) -> list[str]:
    """The lines of a block without titles that have nothing below them."""
    kept: list[str] = []
    for number, line in enumerate(lines):
        below = lines[number + 1] if number + 1 < len(lines) else ""
        if _TITLE.fullmatch(line) and not below.startswith("- "):
            if kept and not kept[-1]:
                kept.pop()
            continue
        kept.append(line)
    return kept if any(line.startswith("- ") for line in kept) else [*kept, "", NOTHING]
