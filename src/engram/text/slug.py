"""Readable handles."""

import re

_WORD = re.compile(r"[^\W_]+")


def slug(text: str, words: int = 6, length: int = 48) -> str:
    """A readable handle made of the first words of a text."""
    found = _WORD.findall(text[:400].lower())
    chosen: list[str] = []
    for word in found:
        if len(chosen) == words or sum(map(len, chosen)) + len(chosen) + len(word) > length:
            break
        chosen.append(word)
    return "-".join(chosen) or "-".join(found)[:length]
