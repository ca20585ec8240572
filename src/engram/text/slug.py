"""Readable handles."""

import re

_WORD = re.compile(r"[^\W_]+")


def slug(text: str, words: int = 6, length: int = 48) -> str:
    """A readable handle made of the first words of a text."""
    found = _WORD.findall(text[:400].lower())
    chosen = found[:words]
    while len(handle := "-".join(chosen)) > length:
        chosen.pop()
    return handle or "-".join(found)[:length]
