"""The header of a rule or a skill."""

import re
from collections.abc import Mapping
from typing import Any

from engram.agents.sources.globs import MAX_GLOB_CHARS
from engram.model.errors import EngramError
from engram.model.lazy import lazy_pattern
from engram.readers.frontmatter import split_frontmatter

MAX_GLOBS = 200
"""Globs of one rule."""

_FIELD = lazy_pattern(r"^([A-Za-z][\w-]*):[ \t]*(.*)$", re.MULTILINE)
_PATHS = lazy_pattern(r"^paths:[ \t]*(.*(?:\n[ \t]*-[ \t]+.*)*)", re.MULTILINE)
_NO_GLOB = lazy_pattern(r"[-+.\d]+|true|false|null|~|.*:\s.*", re.IGNORECASE)
"""Numbers and the like: what YAML takes for something else than a text."""
_ITEM = lazy_pattern(r"\n[ \t]*+-[ \t]++")
_COMMA_OR_BRACE = lazy_pattern(r"[{},\n]")


def header_of(text: str) -> Mapping[str, Any]:
    """The fields of a file's header; where it is no YAML, its plain lines; empty if it has none."""
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
    """The globs in the field `paths` of a rule's header; none where it holds something else, so that a mistake hides no rule.

    People write them unquoted, which YAML would not read: `- **/*.ts`.
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
    """The parts of a list with commas; one inside braces on a line belongs to a glob."""
    parts, end, in_braces = list[str](), len(text), False
    for sign in reversed(list(_COMMA_OR_BRACE.finditer(text))):
        if sign[0] == "," and not in_braces:
            parts.append(text[sign.end() : end])
            end = sign.start()
        elif sign[0] != ",":
            in_braces = sign[0] == "}"
    return [text[:end], *reversed(parts)]


def text_field(header: Mapping[str, Any], name: str) -> str:
    """A field on one line; "" if it is no text."""
    value = header.get(name)
    return " ".join(value.split()) if isinstance(value, str) else ""
