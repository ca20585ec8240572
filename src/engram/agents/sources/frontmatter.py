"""The header of a rule or a skill, and its globs: `*`, `?`, `[…]`, `**` over folders, and braces."""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import groupby, pairwise
from typing import Any

from engram.model.errors import EngramError
from engram.model.lazy import lazy_pattern
from engram.readers.data import split_frontmatter

MAX_ALTERNATIVES = 64
"""Maximum patterns that the braces of one glob expand to."""
MAX_GLOB_CHARS = 1_000
"""A longer glob is ignored."""
FOLDERS = "**"


def expand_glob(pattern: str) -> list[str]:
    """Expand the braces of a pattern: `*.{ts,tsx}` becomes `*.ts` and `*.tsx`."""
    waiting, done = [pattern], list[str]()
    while waiting and len(done) + len(waiting) <= MAX_ALTERNATIVES:
        one = waiting.pop(0)
        if (inner := _braces(one)) is not None:
            start, end, parts = inner
            waiting[:0] = [one[:start] + part + one[end + 1 :] for part in parts]
        elif (whole := _split_alternatives(one)) is not None:
            waiting[:0] = whole
        else:
            done.append(one)
    return (done + waiting)[:MAX_ALTERNATIVES]


def _braces(pattern: str) -> tuple[int, int, list[str]] | None:
    """The position of the first pair of braces with a comma, and its alternatives."""
    first: tuple[int, int, list[int]] | None = None
    opened: list[list[int]] = []
    for at, char in enumerate(pattern):
        if char == "{":
            opened.append([at])
        elif char == "," and opened:
            opened[-1].append(at)
        elif char == "}" and opened:
            start, *commas = opened.pop()
            if commas and (first is None or start < first[0]):
                first = (start, at, commas)
    if first is None:
        return None
    start, end, commas = first
    edges = [start, *commas, end]
    return start, end, [pattern[begin + 1 : stop] for begin, stop in pairwise(edges)]


def _split_alternatives(pattern: str) -> list[str] | None:
    """Split a `**` inside a name, as in `src/**.ts`, into two patterns: for this folder, and for folders below it."""
    folders = pattern.split("/")
    for number, name in enumerate(folders):
        if FOLDERS in name and name != FOLDERS:
            before, _, behind = name.partition(FOLDERS)
            behind = behind.lstrip("*")
            return [
                "/".join([*folders[:number], *middle, *folders[number + 1 :]])
                for middle in ([f"{before}*{behind}"], [f"{before}*", FOLDERS, f"*{behind}"])
            ]
    return None


@lru_cache(maxsize=512)
def compile_glob(pattern: str) -> re.Pattern[str]:
    """Compile a pattern from `expand_glob`, for paths relative to the project with `/` between their parts.

    The text after a `*` or `**` is matched at its first possible place only, unless it is the last: this avoids
    backtracking over several stars. A repository's globs are untrusted, so a pattern must match in a single pass over
    the path.
    """
    pattern = pattern.strip().removeprefix("./").removeprefix("/")
    blocks = _blocks(pattern.split("/"))
    first, *further = ["/".join(map(_name, block)) for block in blocks]
    if not further:
        return re.compile(first)
    *middle, last = further
    found = f"{first}/" if first else ""
    found += "".join(f"(?>(?:[^/]+/)*?{block}/)" for block in middle if block)
    return re.compile(found + (f"(?:[^/]+/)*{last}" if last else ".*"), re.DOTALL)


def _blocks(folders: Sequence[str]) -> list[list[str]]:
    """The names between each `**` of a pattern."""
    blocks: list[list[str]] = [[]]
    for is_any, names in groupby(folders, FOLDERS.__eq__):
        blocks += [[]] if is_any else ()
        blocks[-1] += () if is_any else names
    return blocks


def _name(pattern: str) -> str:
    """The expression for the name of a file or folder."""
    parts, at = [""], 0
    while at < len(pattern):
        if pattern[at] == "*":
            parts += [""] if parts[-1] or len(parts) == 1 else []
        elif pattern[at] == "?":
            parts[-1] += "[^/]"
        elif pattern[at] == "[" and (end := pattern.find("]", at + 2)) > 0:
            parts[-1] += _set(pattern[at + 1 : end])
            at = end
        else:
            parts[-1] += re.escape(pattern[at])
        at += 1
    if len(parts) == 1:
        return parts[0]
    first, *middle, last = parts
    return f"{first}{''.join(f'(?>[^/]*?{part})' for part in middle)}[^/]*{last}"


def _set(inner: str) -> str:
    signs = inner.replace("\\", "\\\\").replace("[", "\\[")
    found = f"(?!/)[{'^' + signs[1:] if signs[0] in '!^' else signs}]"
    try:
        re.compile(found)
    except re.error:
        return re.escape(f"[{inner}]")
    return found


def matches(pattern: str, path: str) -> bool:
    """Whether a path relative to the project matches a glob."""
    return any(compile_glob(one).fullmatch(path) for one in expand_glob(pattern))


def fixed_folder(pattern: str) -> str:
    """The leading folder of a pattern without braces, up to the first wildcard; "" if there is none."""
    parts = pattern.strip().removeprefix("./").removeprefix("/").split("/")[:-1]
    fixed = next((at for at, part in enumerate(parts) if re.search(r"[*?\[{]", part)), len(parts))
    return "/".join(parts[:fixed])


MAX_GLOBS = 200
"""Maximum globs of one rule."""

_FIELD = lazy_pattern(r"^([A-Za-z][\w-]*):[ \t]*(.*)$", re.MULTILINE)
_PATHS = lazy_pattern(r"^paths:[ \t]*(.*(?:\n[ \t]*-[ \t]+.*)*)", re.MULTILINE)
_NO_GLOB = lazy_pattern(r"[-+.\d]+|true|false|null|~|.*:\s.*", re.IGNORECASE)
"""Numbers and other values that YAML does not read as text."""
_ITEM = lazy_pattern(r"\n[ \t]*+-[ \t]++")
_COMMA_OR_BRACE = lazy_pattern(r"[{},\n]")


def header_of(text: str) -> Mapping[str, Any]:
    """The fields of a file's header; for invalid YAML, its plain lines; empty if there is no header."""
    parts = split_frontmatter(text)
    if parts is None:
        return {}
    from engram.readers.yaml_parser import parse_yaml

    try:
        tree = parse_yaml(parts.head).tree
    except EngramError:
        tree = None
    if isinstance(tree, dict):
        return tree
    return {name: value.strip().strip("\"'") for name, value in _FIELD.findall(parts.head)}


def body_of(text: str) -> str:
    """A file without its header."""
    parts = split_frontmatter(text)
    return text if parts is None else parts.body


def globs_of(text: str) -> list[str]:
    """The globs in the field `paths` of a rule's header; none if the field is something else, so that a mistake hides no rule.

    People write them unquoted, which is invalid YAML: `- **/*.ts`.
    """
    parts = split_frontmatter(text)
    found = _PATHS.search(parts.head) if parts is not None else None
    written = found[1].strip() if found is not None else ""
    if written.startswith("["):
        written = written[1:-1] if written.endswith("]") else ""
    listed = [part for item in _ITEM.split(f"\n{written}") for part in _split_at_commas(item)]
    return [
        glob
        for glob in (one.strip().strip("\"'").strip() for one in listed[:MAX_GLOBS])
        if glob and len(glob) <= MAX_GLOB_CHARS and not _NO_GLOB.fullmatch(glob)
    ]


def _split_at_commas(text: str) -> list[str]:
    """Split a list at commas, except at those inside braces, which belong to a glob."""
    parts, end, in_braces = list[str](), len(text), False
    for sign in reversed(list(_COMMA_OR_BRACE.finditer(text))):
        if sign[0] == "," and not in_braces:
            parts.append(text[sign.end() : end])
            end = sign.start()
        elif sign[0] != ",":
            in_braces = sign[0] == "}"
    return [text[:end], *reversed(parts)]


def text_field(header: Mapping[str, Any], name: str) -> str:
    """A field as one line; "" if it is not text."""
    value = header.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""
