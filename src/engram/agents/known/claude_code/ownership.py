"""Whether a folder of Claude Code belongs to one project alone: `acme-api`, `acme_api` and `acme/api` all get the folder `…-acme-api`."""

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from engram.agents.known.claude_code.folders import MAX_SLUG_CHARS, replace_with_dashes
from engram.agents.known.claude_code.transcripts import ClaudeCodeReader
from engram.agents.sources.places import SourcePlaces
from engram.agents.transcripts.session import Problems, directory_in
from engram.store.repositories import git_top, resolve_path

MAX_TRANSCRIPTS = 40
"""Transcripts of a folder that are asked where they ran: the newest."""
MAX_FOLDERS = 500
"""Folders that are listed in the search for other projects with the same name; beyond that, the answer is no."""


def belongs_to_project(folder: Path, root: Path, places: SourcePlaces) -> bool:
    """Whether a folder that is named after a root of the project has nothing of another project.

    It has if one of its transcripts ran elsewhere, in a directory with the same name, or if another repository, or a directory outside
    of any, has the same name. The name of a long path is cut, so that many paths may share it; there a transcript has to name the project.
    """
    name = replace_with_dashes(str(root))
    ran_in = [one for one in _directories(folder) if _shares_name(replace_with_dashes(one), name)]
    if not all(places.is_in_project(one) for one in ran_in):
        return False
    return bool(ran_in) if len(name) > MAX_SLUG_CHARS else not _has_rival(root, name, places)


def _shares_name(one: str, other: str) -> bool:
    """Whether two paths get the same folder, as far as versions of Claude Code agree."""
    return one == other or (len(one) > MAX_SLUG_CHARS < len(other) and one[:MAX_SLUG_CHARS] == other[:MAX_SLUG_CHARS])


def _directories(folder: Path) -> Iterator[str]:
    """Where the sessions of a folder ran, as far as they say."""
    reader = ClaudeCodeReader()
    sessions = [one for one in reader.sessions(folder, Problems()) if one.path.parent == folder]
    sessions.sort(key=lambda one: one.modified, reverse=True)
    for session in sessions[:MAX_TRANSCRIPTS]:
        with suppress(OSError):
            if directory := directory_in(reader, session):
                yield directory


def _has_rival(root: Path, name: str, places: SourcePlaces) -> bool:
    """Whether a directory of another project gets the same name; also if there are too many folders to look at."""
    waiting = [(Path(root.anchor), name[len(replace_with_dashes(root.anchor)) :])]
    for _ in range(MAX_FOLDERS):
        if not waiting:
            return False
        folder, rest = waiting.pop()
        for path, left in _matching_folders(folder, rest, root):
            if not left:
                if _is_other_project(path, places):
                    return True
            elif not places.is_in_project(str(path)):
                waiting.append((path, left))
    return True


def _matching_folders(folder: Path, rest: str, root: Path) -> Iterator[tuple[Path, str]]:
    """The folders in a folder with whose names the rest of a name may begin, and what is left of it then."""
    try:
        names = os.listdir(folder)
    except OSError:  # others may not list it, so that only the way to the project is known
        names = [root.parts[len(folder.parts)]] if root.is_relative_to(folder) and root != folder else []
    for name in names:
        part = replace_with_dashes(name)
        if rest == part or rest.startswith(f"{part}-"):
            path = folder / name
            with suppress(OSError):
                if path.is_dir():
                    yield path, rest[len(part) + 1 :]


def _is_other_project(path: Path, places: SourcePlaces) -> bool:
    """Whether Claude Code would keep something about this directory as a project of its own."""
    real = resolve_path(path)
    return not places.is_in_project(str(real)) and git_top(real, places.home) in (None, real)
