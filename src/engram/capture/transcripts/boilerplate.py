"""What a harness adds to a person's turns: reminders, command wrappers, notifications, summaries. `data/boilerplate.txt` lists it."""

import re
from functools import lru_cache
from pathlib import Path

from engram.model.lazy import dataclass

_DATA = Path(__file__).parent / "data"
_COMMENT = ";;"


@dataclass(frozen=True, slots=True)
class _Boilerplate:
    drop: tuple[str, ...]
    remove: re.Pattern[str]
    keep: re.Pattern[str]
    wrapper: tuple[str, ...]
    after: tuple[str, ...]


def typed_text(content: str) -> str:
    """What the person typed of a turn; "" if nothing of it."""
    known = _boilerplate()
    text = content.strip()
    if "<" in text:
        if kept := known.keep.findall(text):
            return "\n".join(filter(None, (inner.strip() for _, inner in kept)))
        if any(f"<{name}>" in text for name in known.wrapper):
            return ""
        text = known.remove.sub("", text).strip()
    for marker in known.after:
        text = text.partition(marker)[2].strip() if marker in text else text
    return "" if text.startswith(known.drop) else text


def table(name: str) -> dict[str, list[str]]:
    """The lines of a data file by section; one that starts with `;;` is a comment."""
    found: dict[str, list[str]] = {}
    section: list[str] = []
    for line in (_DATA / name).read_text("utf-8").splitlines():
        if line.startswith("[") and line.endswith("]") and line[1:-1].isalpha():
            section = found.setdefault(line[1:-1], [])
        elif line.strip() and not line.startswith(_COMMENT):
            section.append(line)
    return found


@lru_cache(maxsize=1)
def _boilerplate() -> _Boilerplate:
    listed = table("boilerplate.txt")
    return _Boilerplate(
        tuple(listed["drop"]),
        re.compile(rf"<({'|'.join(listed['remove'])})\b[^<>]*>.*?(?:</\1>|\Z)", re.DOTALL),
        re.compile(rf"<({'|'.join(listed['keep'])})>(.*?)</\1>", re.DOTALL),
        tuple(listed["wrapper"]),
        tuple(listed["after"]),
    )
