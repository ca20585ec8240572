"""The instruction files of all agents: up the tree, the user's and the managed ones, and the files they import with `@path`."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from engram.agents.registry import all_agents
from engram.agents.sources.documents import Documents, FoundFile, read_text
from engram.agents.sources.places import SourcePlaces, real_file
from engram.model.lazy import lazy_pattern
from engram.text.markup import strip_code_spans, strip_comments

MAX_IMPORT_HOPS = 5
"""Imports of imports that are followed, as agents do."""
MAX_IMPORTS = 200
MAX_IMPORT_CHARS = 1_000
"""Characters of an imported path; no file has a longer one."""
MAX_PUNCTUATION = 8
"""Characters of punctuation behind a path that may belong to the sentence around it."""
_IMPORT = lazy_pattern(r"(?:^|(?<=[\s(]))@((?:\\ |[^\s@()\\])+)", re.MULTILINE)
_FENCED = lazy_pattern(r"^ {0,3}(`{3,}|~{3,}).*?(?:^ {0,3}\1[`~]*[ \t]*$|\Z)", re.MULTILINE | re.DOTALL)
_ITEM = lazy_pattern(r" {0,3}(?:[-*+]|\d{1,9}[.)])\s")
_PUNCTUATION = ".,;:!?'\"*_>]}`"


def find_instructions(documents: Documents) -> None:
    """Add the instructions that apply in the directory, nearest first, then the user's and the managed ones, and their imports."""
    places, agents = documents.places, all_agents()
    named = dict.fromkeys(name for agent in agents for name in agent.instructions.up_the_tree)
    of_users = {places.user_folder(agent) for agent in agents}
    for folder in places.upwards():
        at_root = [name for agent in agents for name in agent.instructions.at_root] if folder == places.top else []
        for name in (*named, *at_root):
            path = folder / name
            # A folder of settings in the home is the user's, or nobody's.
            is_here = path.parent == folder or (folder != places.home and path.parent not in of_users)
            if is_here and is_own(path, places):
                _add_with_imports(documents, folder, name)
    for agent in agents:
        for name in agent.instructions.of_user:
            _add_with_imports(documents, places.user_folder(agent), name)
        if (managed := places.managed_folder(agent)) is not None:
            for name in agent.instructions.managed:
                _add_with_imports(documents, managed, name)


def is_own(path: Path, places: SourcePlaces) -> bool:
    """Whether a file exists and may speak here: above the project it must belong to the user or the administrator."""
    try:
        owner = path.stat().st_uid
    except OSError:
        return False
    return path.is_relative_to(places.top) or owner in (os.getuid(), 0)


def _add_with_imports(documents: Documents, folder: Path, name: str) -> None:
    """Add a file and what it imports, hop by hop; every file once, so that a cycle ends."""
    target = documents.add_below("instructions", folder, name)
    waiting = [(target, folder / name)] if target is not None else []
    left = MAX_IMPORTS
    for _ in range(MAX_IMPORT_HOPS):
        imported = []
        for origin, named in waiting:
            for wanted in imports_of(read_text(origin)):
                left -= 1
                file = None if left < 0 else _import_of(wanted, (named.parent, origin.parent), documents.places)
                if file is not None and documents.add("instructions", file):
                    imported.append((Path(file.target), Path(file.path)))
        waiting = imported


def imports_of(text: str) -> Iterator[str]:
    """The paths that a text imports, as written; those in code are only shown, and those in comments hidden."""
    prose = "".join(_outside_indented_code(_FENCED.sub("", text)))
    plain = strip_comments(strip_code_spans(prose), unclosed=True)
    wanted = dict.fromkeys(found[1].replace("\\ ", " ") for found in _IMPORT.finditer(plain))
    yield from (path for path in wanted if len(path) <= MAX_IMPORT_CHARS)


def _outside_indented_code(text: str) -> Iterator[str]:
    """The lines that are no indented code: such a block follows a blank line or a heading, and in a list an indent only continues an item."""
    may_begin, in_list = True, False
    for line in text.splitlines(keepends=True):
        if not line.strip():
            may_begin = True
        elif line.startswith(("    ", "\t")):
            if may_begin and not in_list:
                continue
            may_begin = False
        else:
            ends_list = may_begin and not line[0].isspace()
            in_list = _ITEM.match(line) is not None or (in_list and not ends_list)
            may_begin = line.startswith("#")
        yield line


def _import_of(wanted: str, folders: tuple[Path, Path], places: SourcePlaces) -> FoundFile | None:
    """The file that an import names and that may be read; with trailing punctuation of the sentence around it, or without.

    `folders` are that of the importing file as it is named, and its real one, which decides what may be read.
    """
    for _ in range(MAX_PUNCTUATION + 1):
        for path in _candidates(wanted, folders, places):
            if target := real_file(str(path)):
                is_allowed = places.access.may_read(str(folders[1]), target)
                return FoundFile(str(path), target) if is_allowed else None
        if wanted[-1:] not in _PUNCTUATION or not wanted[:-1]:
            return None
        wanted = wanted[:-1]
    return None


def _candidates(wanted: str, folders: tuple[Path, Path], places: SourcePlaces) -> list[Path]:
    if wanted == "~" or wanted.startswith("~/"):
        return [places.home / wanted[2:]]
    path = Path(wanted)
    return [path] if path.is_absolute() else [Path(os.path.normpath(folder / path)) for folder in folders]
