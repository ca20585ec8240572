"""Markdown without its code and comments. Each function looks at every character once, whatever a text repeats."""

import re
from collections import defaultdict, deque

__all__ = ["strip_code_spans", "strip_comments"]

_TICKS = re.compile(r"`+")
_BETWEEN_PARAGRAPHS = re.compile(r"(\n[^\S\n]*+\n)")
_COMMENT = re.compile(r"<!--.*?(?:(?P<end>-->)|\Z)", re.DOTALL)


def strip_code_spans(text: str) -> str:
    """Return the text without its code spans: from a run of backticks to the next one of the same length in its paragraph."""
    if "`" not in text:
        return text
    return "".join(map(_outside_code, _BETWEEN_PARAGRAPHS.split(text)))


def _outside_code(paragraph: str) -> str:
    runs = [found.span() for found in _TICKS.finditer(paragraph)]
    later: defaultdict[int, deque[tuple[int, int]]] = defaultdict(deque)
    for start, end in runs:
        later[end - start].append((start, end))
    pieces, at = [], 0
    for start, end in runs:
        later[end - start].popleft()
        if start < at or not (same := later[end - start]):
            continue
        pieces.append(paragraph[at:start])
        at = same[0][1]
    return "".join([*pieces, paragraph[at:]])


def strip_comments(text: str, *, unclosed: bool) -> str:
    """Return the text without its comments; one that never ends hides the rest of the text if `unclosed`, and is text otherwise."""
    return _COMMENT.sub(lambda found: "" if unclosed or found["end"] else found[0], text)
