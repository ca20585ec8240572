"""Skills of the project, of the user and of plugins; of a plugin the version that is installed, else the newest."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from engram.agents.known.claude_code.folders import ClaudeFolders
from engram.agents.known.claude_code.paths import CONFIG
from engram.agents.sources.documents import Documents, files_below, folders_in
from engram.agents.sources.instructions import is_own
from engram.agents.sources.places import real_folder, settings_of
from engram.model.lazy import lazy_pattern

FILE = "SKILL.md"
_NUMBER = lazy_pattern(r"\d+")


def find_skills(documents: Documents) -> None:
    """Add the skills that an agent here could use."""
    places = documents.places
    own = places.make_once(ClaudeFolders)
    for config in own.project_configs():
        if is_own(config / "skills", places):
            _add_below(documents, config.parent, f"{CONFIG}/skills")
    _add_below(documents, own.config, "skills")
    for version in _plugins(own.config):
        _add_below(documents, own.config, os.path.relpath(version, own.config))


def _add_below(documents: Documents, folder: Path, name: str) -> None:
    for file in files_below(documents.places, folder, name, FILE):
        documents.add("skill", file, file.path.rsplit("/", 2)[-2])


def _plugins(config: Path) -> Iterator[str]:
    """The folder of each plugin in the cache: `cache/<marketplace>/<plugin>/<version>`."""
    installed = _find_installed(config)
    for market in folders_in(str(config / "plugins" / "cache")):
        for plugin in folders_in(market):
            versions = folders_in(plugin)
            chosen = [path for path in versions if installed and real_folder(path) in installed]
            if chosen:
                yield chosen[-1]
            elif versions and all(map(_is_version, versions)):
                yield versions[0] if len(versions) == 1 else max(versions, key=_age)
            else:
                yield plugin


def _find_installed(config: Path) -> set[str]:
    """The folders that Claude Code's own list names."""
    listed = settings_of(config / "plugins" / "installed_plugins.json").get("plugins")
    entries = [one for each in (listed.values() if isinstance(listed, dict) else ()) for one in _several(each)]
    paths = (entry.get("installPath") for entry in entries if isinstance(entry, dict))
    return {real_folder(path) for path in paths if isinstance(path, str) and "\0" not in path}


def _several(entry: object) -> list[object]:
    return entry if isinstance(entry, list) else [entry]


def _is_version(path: str) -> bool:
    """Whether a folder is a version of its plugin: a number, a commit, or `unknown`."""
    name = path.rpartition("/")[2]
    return name == "unknown" or name[:1].isdigit() or re.fullmatch(r"v\d.*|[0-9a-f]{7,40}", name) is not None


def _age(path: str) -> tuple[list[int], float, str]:
    """What the newest version has most of: its numbers, where it has any, then the time it was installed."""
    name = path.rpartition("/")[2]
    numbers = [int(number) for number in _NUMBER.findall(name.partition("-")[0])] if "." in name else []
    try:
        changed = os.stat(path).st_mtime
    except OSError:
        changed = 0.0
    return numbers, changed, name
