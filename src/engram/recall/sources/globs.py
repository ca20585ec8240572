"""Globs of rules: `*`, `?`, `[…]`, `**` over folders, and braces."""

import re
from functools import lru_cache

MOST_ALTERNATIVES = 64
"""Patterns that the braces of one glob may stand for."""


def expanded(pattern: str) -> list[str]:
    """The patterns without braces that a pattern stands for: `*.{ts,tsx}` is `*.ts` and `*.tsx`."""
    waiting, done = [pattern], list[str]()
    while waiting and len(done) + len(waiting) <= MOST_ALTERNATIVES:
        one = waiting.pop(0)
        inner = _braces(one)
        if inner is None:
            done.append(one)
        else:
            start, end, parts = inner
            waiting[:0] = [one[:start] + part + one[end + 1 :] for part in parts]
    return (done + waiting)[:MOST_ALTERNATIVES]


def _braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """Where the first pair of braces with a comma is, and its alternatives."""
    start = pattern.find("{")
    while start >= 0:
        depth, parts, begin = 0, list[str](), start + 1
        for at in range(start, len(pattern)):
            char = pattern[at]
            depth += (char == "{") - (char == "}")
            if (char == "," and depth == 1) or depth == 0:
                parts.append(pattern[begin:at])
                begin = at + 1
            if depth == 0:
                if len(parts) > 1:
                    return start, at, parts
                break
        start = pattern.find("{", start + 1)
    return None


@lru_cache(maxsize=512)
def compiled(pattern: str) -> re.Pattern[str]:
    """One pattern without braces, for a path relative to the project with `/` between its parts."""
    pattern = pattern.strip().removeprefix("./").removeprefix("/")
    out, at = "", 0
    while at < len(pattern):
        if pattern.startswith("**/", at):
            out, at = f"{out}(?:[^/]+/)*", at + 3
        elif pattern.startswith("**", at):
            out, at = f"{out}.*", at + 2
        else:
            part, at = _part(pattern, at)
            out += part
    try:
        return re.compile(out)
    except re.error:
        return re.compile(re.escape(pattern))


def _part(pattern: str, at: int) -> tuple[str, int]:
    char = pattern[at]
    if char == "*":
        return "[^/]*", at + 1
    if char == "?":
        return "[^/]", at + 1
    if char == "[" and (end := pattern.find("]", at + 2)) > 0:
        inner = pattern[at + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
        return f"[{'^' + inner[1:] if inner[0] in '!^' else inner}]", end + 1
    return re.escape(char), at + 1


def matches(pattern: str, path: str) -> bool:
    """Whether a path relative to the project matches a glob."""
    return any(compiled(one).fullmatch(path) for one in expanded(pattern))


def fixed_folder(pattern: str) -> str:
    """The folder at the beginning of a pattern without braces that has no wildcards; "" for none."""
    parts = pattern.strip().removeprefix("./").removeprefix("/").split("/")[:-1]
    fixed = next((at for at, part in enumerate(parts) if re.search(r"[*?\[{]", part)), len(parts))
    return "/".join(parts[:fixed])
