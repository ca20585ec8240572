"""Where Claude Code keeps what belongs to a project, the user and the organisation."""

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from engram.agents.known.claude_code.paths import CONFIG, NAME, find_config, find_managed
from engram.agents.sources.access import is_below
from engram.agents.sources.places import SourcePlaces, real_folder, settings_of
from engram.model.lazy import cached_property, lazy_pattern
from engram.store.repositories import resolve_path

MAX_SLUG_CHARS = 200
"""Characters of a project's folder name in Claude Code; a longer one is cut, and a hash is added."""
_NOT_PLAIN = lazy_pattern(r"[^a-zA-Z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_OWN_NAME = "CLAUDE_CODE_PROJECT_DIR_NAME"


class ClaudeFolders:
    """The folders of Claude Code for one project."""

    def __init__(self, places: SourcePlaces) -> None:
        self._places = places
        self.config = find_config(places.home, places.environment)
        self._projects = self.config / "projects"

    def project_configs(self) -> Iterator[Path]:
        """The `.claude` of the directory and of every folder above it, less the home's: that one is the user's, or nobody's."""
        own = {self._places.home / CONFIG, self.config}
        yield from (folder / CONFIG for folder in self._places.upwards() if folder / CONFIG not in own)

    def project_folders(self) -> list[Path]:
        """The folders with what belongs to this project: by its main worktree first, then by the directory."""
        places = self._places
        if named := places.environment.get(_OWN_NAME):
            return [self._projects / Path(named).name]
        paths = dict.fromkeys(
            (places.main, resolve_path(places.main), *places.roots, places.directory, resolve_path(places.directory))
        )
        folders = [folder for path in paths for folder in _named_for(self._projects, str(path))]
        return list(dict.fromkeys(folders))

    def session_folders(self) -> list[Path]:
        """The folders that may have sessions of this project: those named for it, and for folders below it."""
        exact = self.project_folders()
        begins = tuple(f"{slug(str(path))}-" for path in self._places.roots)
        with suppress(OSError):
            below = (one for one in sorted(self._projects.iterdir()) if one.name.startswith(begins) and one.is_dir())
            found = dict.fromkeys([*(one for one in exact if one.is_dir()), *below])
            config = real_folder(str(self.config))
            return [one for one in found if is_below(real_folder(str(one)), config)]
        return []

    @cached_property
    def own_folders(self) -> list[Path]:
        """Those of the project's folders that have nothing of another project.

        Claude Code names a folder after the root of a repository, and different paths may have the same name. The user's own choice of a
        name is not checked.
        """
        from engram.agents.known.claude_code.ownership import belongs_to_project

        places = self._places
        if places.environment.get(_OWN_NAME):
            return self.project_folders()
        folders = dict.fromkeys(
            folder
            for path in (places.main, resolve_path(places.main), *places.roots)
            for folder in _named_for(self._projects, str(path))
            if folder.is_dir() and belongs_to_project(folder, path, places)
        )
        return list(folders)

    def settings(self) -> Iterator[Mapping[str, Any]]:
        """The settings of the organisation, then those of the user. A project's are not read: it may be a clone."""
        managed = self._places.managed.get(NAME) or find_managed()
        yield settings_of(managed / "managed-settings.json")
        yield settings_of(self.config / "settings.json")


def slug(path: str) -> str:
    """The name that Claude Code gives the folder of a project: every character that is no letter or digit becomes `-`."""
    name = replace_with_dashes(path)
    return name if len(name) <= MAX_SLUG_CHARS else f"{name[:MAX_SLUG_CHARS]}-{_hash(path)}"


def replace_with_dashes(path: str) -> str:
    """A path with `-` for every character that is no letter or digit."""
    # JavaScript replaces each half of a character beyond 16 bits.
    return "".join("--" if ord(char) > 0xFFFF else char for char in path).translate(_DASHES)


class _Dashes(dict[int, str]):
    def __missing__(self, code: int) -> str:
        self[code] = kept = _NOT_PLAIN.sub("-", chr(code))
        return kept


_DASHES = _Dashes()


def _hash(path: str) -> str:
    """The hash of a long path, as Claude Code computes it without Bun; with Bun it is another one."""
    value = 0
    data = path.encode("utf-16-le", "surrogatepass")
    for at in range(0, len(data), 2):
        value = (value * 31 + int.from_bytes(data[at : at + 2], "little")) & 0xFFFFFFFF
    value = abs(value - (1 << 32) if value >= 1 << 31 else value)
    digits = ""
    while value:
        value, rest = divmod(value, len(_DIGITS))
        digits = _DIGITS[rest] + digits
    return digits or "0"


def _named_for(projects: Path, path: str) -> list[Path]:
    """The folders of a project; of a long path any with its beginning, since versions of the program hash it differently."""
    name = replace_with_dashes(path)
    if len(name) <= MAX_SLUG_CHARS:
        return [projects / name]
    begins = f"{name[:MAX_SLUG_CHARS]}-"
    try:
        others = sorted(one for one in os.listdir(projects) if one.startswith(begins) and "-" not in one[len(begins) :])
    except OSError:
        others = []
    exact = slug(path)
    return [projects / one for one in dict.fromkeys((exact, *others)) if one == exact or len(others) == 1]
