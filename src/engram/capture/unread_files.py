"""The files of a folder that an import does not read, so that none is left out without a word."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

from engram.text.display import format_count

MOST_KINDS = 8
"""Kinds of files that are named; the rest is counted."""
MOST_NAMES = 3
"""Names per kind."""


def unread_files(folder: Path, is_read: Callable[[Path], bool]) -> list[str]:
    """The other files in a folder and below it, by kind: how many there are, and the names of the first."""
    kinds: defaultdict[str, list[str]] = defaultdict(list)
    for file in _files(folder):
        if not is_read(file):
            kinds[file.suffix.lower()].append(file.relative_to(folder).as_posix())
    ordered = sorted(kinds.items(), key=lambda kind: (-len(kind[1]), kind[0]))
    lines = [_line(suffix, sorted(names)) for suffix, names in ordered[:MOST_KINDS]]
    rest = sum(len(names) for _, names in ordered[MOST_KINDS:])
    return [*lines, f"{format_count(rest, 'file')} of other kinds"] if rest else lines


def _files(folder: Path) -> Iterator[Path]:
    """The files of a folder and below it, hidden ones left out; links to folders are not followed."""
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        yield from (Path(place, name) for name in names if not name.startswith("."))


def _line(suffix: str, names: list[str]) -> str:
    kind = f"{suffix} file" if suffix else "file without a suffix"
    plural = "" if suffix else "files without a suffix"
    more = ", …" if len(names) > MOST_NAMES else ""
    return f"{format_count(len(names), kind, plural)}: {', '.join(names[:MOST_NAMES])}{more}"
