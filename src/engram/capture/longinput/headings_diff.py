"""Headings of a diff: the commit if it names one, the file, the hunk."""

import re
from collections.abc import Iterator

from engram.capture.longinput.headings import Heading, titled

__all__ = ["diff_headings"]

COMMIT, FILE, HUNK = 1, 2, 3

_MARKED = re.compile(
    r"^(?:"
    r"(?P<commit>commit [0-9a-f]{7,40}\b.*|From [0-9a-f]{40} .*)"
    r"|(?P<git>diff --(?:git|cc|combined) .*)"
    r"|(?P<index>Index: .*)"
    r"|(?P<old>--- \S.*)\n(?P<new>\+\+\+ \S.*)"
    r"|(?P<hunk>@@+ -(?P<counts>[\d, +-]+) @@+.*)"
    r")$",
    re.MULTILINE,
)
_GIT_PATHS = re.compile(r'diff --git "?a/(?P<old>.*?)"? "?b/(?P<new>.*?)"?\r?$')
_RANGE = re.compile(r"\d+(?:,(\d+))?")


def diff_headings(text: str) -> Iterator[Heading]:
    """Files and hunks in order. The lines of a hunk are counted off, so nothing in them is taken for a header."""
    at, named = 0, ""
    while found := _MARKED.search(text, at):
        at = found.end()
        if found["commit"]:
            yield Heading(found.start(), COMMIT, _commit(found["commit"]))
            named = ""
        elif found["hunk"]:
            yield Heading(found.start(), HUNK, titled(found["hunk"]))
            at = _behind_hunk(text, at, found["counts"])
        elif found["old"]:
            path = _path_of(found["old"], found["new"])
            if path != named:
                yield Heading(found.start(), FILE, titled(path))
            named = ""
        else:
            named = _named(found["git"] or found["index"])
            yield Heading(found.start(), FILE, titled(named))


def _commit(line: str) -> str:
    return f"commit {line.split()[1][:12]}"


def _named(line: str) -> str:
    paths = _GIT_PATHS.match(line)
    return paths["new"] if paths else line.split(maxsplit=2 if line.startswith("diff") else 1)[-1].strip()


def _path_of(old: str, new: str) -> str:
    path = _bare_path(new)
    return _bare_path(old) if path == "/dev/null" else path


def _bare_path(line: str) -> str:
    path = line[4:].split("\t")[0].strip().strip('"')
    return path[2:] if path.startswith(("a/", "b/")) else path


def _behind_hunk(text: str, at: int, counts: str) -> int:
    """Behind the lines the hunk's header announces, or where they stop being lines of a hunk."""
    old, new = (int(count or 1) for count in _RANGE.findall(counts)[:2]) if counts.count("+") == 1 else (0, 0)
    while (old > 0 or new > 0) and at < len(text):
        line = at + 1
        mark = text[line : line + 1]
        if mark not in ("+", "-", " ", "\\", "\n", "\r"):
            return at
        old -= mark not in ("+", "\\")
        new -= mark not in ("-", "\\")
        at = text.find("\n", line)
        if at < 0:
            return len(text)
    return at
