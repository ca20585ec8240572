"""Finds the words of a turn that are not the person's own: pasted logs, traces, diffs, code, and what a tool had just returned.

`data/pasted.txt` lists how such lines begin. Fenced code, quoted lines and mails are left out where sentences are read
(`extraction.clauses`).
"""

import re
from collections import OrderedDict
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

from engram.agents.transcripts.boilerplate import read_sections

_DATA = Path(__file__).parent / "data" / "pasted.txt"
MAX_OUTPUT_LINES = 4_000
"""Lines that tools returned which are remembered, the latest ones."""
MAX_RESULT_CHARS = 200_000
"""Characters of a tool's result that are remembered."""
_SHORTEST = 24
"""Characters; a shorter line may be the same by chance."""
_LOOKED_AT = 240
"""Characters at the beginning of a line that are looked at; a hostile line could make more of them slow."""
_GAP = 2
"""Lines between two pasted ones that belong to what was pasted."""


class ToolOutputLines:
    """The lines that tools returned lately. A person who pastes one did not say it."""

    __slots__ = ("_lines",)

    def __init__(self) -> None:
        self._lines: OrderedDict[int, None] = OrderedDict()

    def note(self, result: str) -> None:
        """Remember the lines of a tool's result."""
        for line in result[:MAX_RESULT_CHARS].splitlines():
            bare = line.strip()
            if len(bare) >= _SHORTEST:
                self._lines[hash(bare)] = None
        while len(self._lines) > MAX_OUTPUT_LINES:
            self._lines.popitem(last=False)

    def __contains__(self, line: str) -> bool:
        bare = line.strip()
        return len(bare) >= _SHORTEST and hash(bare) in self._lines


def pasted_lines(content: str, echoes: ToolOutputLines) -> list[bool]:
    """For each line of a turn, whether it was pasted."""
    lines = content.split("\n")
    pasted = [bool(_printed_pattern().match(line[:_LOOKED_AT])) or line in echoes for line in lines]
    places = [place for place, found in enumerate(pasted) if found]
    for one, other in pairwise(places):
        if other - one <= _GAP + 1:
            pasted[one:other] = [True] * (other - one)
    return pasted


def own_words(content: str, pasted: Sequence[bool]) -> str:
    """The turn with its pasted lines blanked out; every other character keeps its position."""
    if not any(pasted):
        return content
    return "\n".join(map(_blank_pasted, content.split("\n"), pasted, [*pasted[1:], False]))


def _blank_pasted(line: str, is_pasted: bool, introduces: bool) -> str:
    """A line, blanked if it was pasted. One that introduces what was pasted ends here: what comes after it is the person's again."""
    if is_pasted:
        return "\n" * len(line)
    bare = line.rstrip()
    return f"{bare[:-1]}.{line[len(bare) :]}" if introduces and bare.endswith(":") else line


@lru_cache(maxsize=1)
def _printed_pattern() -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{pattern})" for pattern in read_sections(_DATA)["line"]))
