"""Skills of the project, of the user and of plugins; of a plugin the version that is installed, else the newest."""

import re
from collections.abc import Iterator
from pathlib import Path

from engram.recall.sources.documents import Documents, files_below
from engram.recall.sources.instructions import is_own
from engram.recall.sources.places import SourcePlaces, resolved, settings_of

FILE = "SKILL.md"
_NUMBER = re.compile(r"\d+")


def find_skills(documents: Documents) -> None:
    """Add the skills that an agent here could use."""
    places = documents.places
    for folder in places.upwards():
        skills = folder / ".claude" / "skills"
        if is_own(skills, places):
            _add_below(documents, skills)
    _add_below(documents, places.config / "skills")
    for version in _plugins(places):
        _add_below(documents, version)


def _add_below(documents: Documents, folder: Path) -> None:
    for path in files_below(folder, FILE, documents.places.allowed):
        documents.add("skill", path, folder, title=path.parent.name)


def _plugins(places: SourcePlaces) -> Iterator[Path]:
    """The folder of each plugin in the cache: `cache/<marketplace>/<plugin>/<version>`."""
    cache = places.config / "plugins" / "cache"
    installed = _installed(places)
    for plugin in sorted(cache.glob("*/*")):
        versions = [path for path in plugin.iterdir() if path.is_dir()] if plugin.is_dir() else []
        chosen = [path for path in versions if resolved(path) in installed]
        if chosen:
            yield chosen[-1]
        elif versions and all(_is_version(path) for path in versions):
            yield max(versions, key=_age)
        elif plugin.is_dir():
            yield plugin


def _installed(places: SourcePlaces) -> set[Path]:
    """The folders that Claude Code's own list names."""
    listed = settings_of(places.config / "plugins" / "installed_plugins.json").get("plugins")
    entries = [one for each in (listed.values() if isinstance(listed, dict) else ()) for one in _several(each)]
    paths = (entry.get("installPath") for entry in entries if isinstance(entry, dict))
    return {resolved(Path(path)) for path in paths if isinstance(path, str) and "\0" not in path}


def _several(entry: object) -> list[object]:
    return entry if isinstance(entry, list) else [entry]


def _is_version(path: Path) -> bool:
    """Whether a folder is a version of its plugin: a number, a commit, or `unknown`."""
    name = path.name
    return name == "unknown" or name[:1].isdigit() or re.fullmatch(r"v\d.*|[0-9a-f]{7,40}", name) is not None


def _age(path: Path) -> tuple[list[int], float, str]:
    """What the newest version has most of: its numbers, where it has any, then the time it was installed."""
    numbers = [int(number) for number in _NUMBER.findall(path.name.partition("-")[0])] if "." in path.name else []
    try:
        changed = path.stat().st_mtime
    except OSError:
        changed = 0.0
    return numbers, changed, path.name
