"""`.claude/rules`: up the tree and the user's; a rule with `paths:` applies where a file of the project matches one of its globs."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from engram.agents.known.claude_code.folders import ClaudeFolders
from engram.agents.known.claude_code.paths import CONFIG
from engram.agents.sources.documents import Documents, files_below, read_text
from engram.agents.sources.frontmatter import globs_of
from engram.agents.sources.globs import compile_glob, expand_glob, fixed_folder
from engram.agents.sources.instructions import is_own
from engram.agents.sources.places import SourcePlaces

MAX_LISTED_ENTRIES = 20_000
"""Files and folders of a project that are looked at for a match; in a larger one a rule that matched none of them applies."""
_SKIPPED = frozenset(
    (".git", "node_modules", ".venv", "venv", "__pycache__", "target", "dist", "build", ".tox", ".cache")
)


def find_rules(documents: Documents) -> None:
    """Add the rules that apply in the project."""
    places = documents.places
    own = places.make_once(ClaudeFolders)
    configs = [config for config in own.project_configs() if is_own(config / "rules", places)]
    folders = [*((config.parent, f"{CONFIG}/rules") for config in configs), (own.config, "rules")]
    found = [
        (file, globs_of(read_text(Path(file.target))))
        for folder, name in folders
        for file in files_below(places, folder, name, ".md")
    ]
    applying = _find_matching_globs([globs for _, globs in found if globs], places)
    for file, globs in found:
        if not globs or tuple(globs) in applying:
            documents.add("rule", file)


def _find_matching_globs(rules: Sequence[list[str]], places: SourcePlaces) -> set[tuple[str, ...]]:
    """The lists of globs of which one matches a file of the project."""
    matched = set[tuple[str, ...]]()
    left = MAX_LISTED_ENTRIES
    for globs in rules:
        for pattern in (one for glob in globs for one in expand_glob(glob)):
            used, hit = _has_match(pattern, places.top, left)
            left -= used
            if hit or left <= 0:
                matched.add(tuple(globs))
                break
    return matched


def _has_match(pattern: str, top: Path, most: int) -> tuple[int, bool]:
    """How many entries were looked at, and whether a file below the top matches."""
    wanted, looked = compile_glob(pattern), 0
    for path in _files(top, fixed_folder(pattern)):
        looked += 1
        if wanted.fullmatch(path):
            return looked, True
        if looked >= most:
            break
    return looked, False


def _files(top: Path, start: str) -> Iterator[str]:
    """The files below a folder of the project, as paths relative to the project; nothing is followed out of it."""
    waiting = [start]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(top / folder) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.is_symlink() or not entry.is_dir():
                yield path
            elif entry.name not in _SKIPPED:
                waiting.append(path)
