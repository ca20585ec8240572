"""What an agent adds to a person's turns: reminders, command wrappers, notifications, summaries. `data/boilerplate.txt` lists it."""

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from engram.model.lazy import dataclass

_DATA = Path(__file__).parent / "data" / "boilerplate.txt"
_COMMENT = ";;"


@dataclass(frozen=True, slots=True)
class _Boilerplate:
    drop: tuple[str, ...]
    remove: re.Pattern[str]
    keep: tuple[str, ...]
    wrapper: tuple[str, ...]
    after: tuple[str, ...]


def typed_text(content: str) -> str:
    """What the person typed of a turn; "" if nothing of it."""
    known = _boilerplate()
    text = content.strip()
    if "<" in text:
        if kept := [inner for name in known.keep for inner in _inside(text, name)]:
            return "\n".join(filter(None, kept))
        if any(f"<{name}>" in text for name in known.wrapper):
            return ""
        text = known.remove.sub("", text).strip()
    for marker in known.after:
        text = text.partition(marker)[2].strip() if marker in text else text
    return "" if text.startswith(known.drop) else text


def _inside(text: str, name: str) -> Iterator[str]:
    """The content of every element of a name, in one pass."""
    opening, closing = f"<{name}>", f"</{name}>"
    begin = text.find(opening)
    while begin >= 0 and (end := text.find(closing, begin)) >= 0:
        yield text[begin + len(opening) : end].strip()
        begin = text.find(opening, end)


def read_sections(file: Path) -> dict[str, list[str]]:
    """The lines of a data file by section; one that starts with `;;` is a comment."""
    found: dict[str, list[str]] = {}
    section: list[str] = []
    for line in file.read_text("utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and line[1:-1].isalpha():
            section = found.setdefault(line[1:-1], [])
        elif line.strip() and not line.startswith(_COMMENT):
            section.append(line)
    return found


@lru_cache(maxsize=1)
def _boilerplate() -> _Boilerplate:
    listed = read_sections(_DATA)
    return _Boilerplate(
        tuple(listed["drop"]),
        re.compile(rf"<({'|'.join(listed['remove'])})\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL),
        tuple(listed["keep"]),
        tuple(listed["wrapper"]),
        tuple(listed["after"]),
    )
