"""Finds what Claude Code keeps about a project: session folders, auto memory, rules, skills and Engram's plugin.

It also decides whether a folder belongs to that project alone.
"""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engram.agents.agent import Plugin, SourceFinders
from engram.agents.known.claude_code.paths import CONFIG, NAME, find_config, find_managed
from engram.agents.known.claude_code.transcripts import ClaudeCodeReader
from engram.agents.sources.documents import Documents, files_below, folders_in, is_own, read_text
from engram.agents.sources.frontmatter import compile_glob, expand_glob, fixed_folder, globs_of
from engram.agents.sources.places import SourcePlaces, is_below, real_folder, settings_of
from engram.agents.transcripts.session import Problems, directory_in
from engram.model.lazy import cached_property, lazy_pattern
from engram.store.scopes import git_top, resolve_path

MAX_SLUG_CHARS = 200
"""Maximum characters of a project's folder name in Claude Code; a longer name is cut, and a hash is added."""
_NOT_PLAIN = lazy_pattern(r"[^a-zA-Z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_OWN_NAME = "CLAUDE_CODE_PROJECT_DIR_NAME"


class ClaudeFolders:
    """Claude Code's folders for one project."""

    def __init__(self, places: SourcePlaces) -> None:
        self._places = places
        self.config = find_config(places.home, places.environment)
        self._projects = self.config / "projects"

    def project_configs(self) -> Iterator[Path]:
        """The `.claude` of the directory and of every folder above it, except the home's, which is not a project's."""
        own = {self._places.home / CONFIG, self.config}
        yield from (folder / CONFIG for folder in self._places.upwards() if folder / CONFIG not in own)

    def project_folders(self) -> list[Path]:
        """The folders with files of this project: by its main worktree first, then by the directory."""
        places = self._places
        if named := places.environment.get(_OWN_NAME):
            return [self._projects / Path(named).name]
        paths = dict.fromkeys(
            (places.main, resolve_path(places.main), *places.roots, places.directory, resolve_path(places.directory))
        )
        folders = [folder for path in paths for folder in _named_for(self._projects, str(path))]
        return list(dict.fromkeys(folders))

    def session_folders(self) -> list[Path]:
        """The folders that may have sessions of this project, named after it or after folders below it."""
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
        """The project's folders that contain nothing of another project.

        Claude Code names a folder after the root of a repository, and different paths can get the same name. A folder
        name that the user has chosen is not checked.
        """

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
        """The organisation's settings, then the user's. A project's are not read, because it may be an untrusted clone."""
        managed = self._places.managed.get(NAME) or find_managed()
        yield settings_of(managed / "managed-settings.json")
        yield settings_of(self.config / "settings.json")


def slug(path: str) -> str:
    """The name that Claude Code gives a project's folder: each character except letters and digits becomes `-`."""
    name = replace_with_dashes(path)
    return name if len(name) <= MAX_SLUG_CHARS else f"{name[:MAX_SLUG_CHARS]}-{_hash(path)}"


def replace_with_dashes(path: str) -> str:
    """A path with each character except letters and digits replaced by `-`."""
    # JavaScript replaces each half of a surrogate pair.
    return "".join("--" if ord(char) > 0xFFFF else char for char in path).translate(_DASHES)


class _Dashes(dict[int, str]):
    def __missing__(self, code: int) -> str:
        self[code] = kept = _NOT_PLAIN.sub("-", chr(code))
        return kept


_DASHES = _Dashes()


def _hash(path: str) -> str:
    """The hash of a long path, as Claude Code computes it without Bun; with Bun, the hash differs."""
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
    """The folders of a project. For a long path, any folder with its beginning, since the hash depends on the version."""
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


SETTING = "autoMemoryDirectory"
INDEX = "MEMORY.md"
MAX_TOPIC_FILES = 500


def find_auto_memory(documents: Documents) -> None:
    """Add the files of the first folder that has any: its index first, then the topics by name."""
    for folder in folders_of(documents.places):
        try:
            names = sorted(path.name for path in folder.glob("*.md"))
        except OSError:
            continue
        for name in sorted(names, key=lambda name: name != INDEX)[:MAX_TOPIC_FILES]:
            documents.add_below("auto-memory", folder, name)
        if names:
            return


def folders_of(places: SourcePlaces) -> list[Path]:
    """The possible folders of the auto memory.

    Only the user's and the managed settings may choose another folder; a cloned project must not.
    """
    own = places.make_once(ClaudeFolders)
    for settings in own.settings():
        chosen = settings.get(SETTING)
        if isinstance(chosen, str) and chosen.strip():
            folder = places.home / chosen[2:] if chosen.startswith("~/") else Path(chosen)
            if folder.is_absolute() and "\0" not in chosen:
                return [folder]
    return [folder / "memory" for folder in own.own_folders]


MAX_LISTED_ENTRIES = 20_000
"""Maximum files and folders of a project checked for a match; in a larger project, a rule without a match so far applies."""
_SKIPPED = frozenset(
    (".git", "node_modules", ".venv", "venv", "__pycache__", "target", "dist", "build", ".tox", ".cache")
)


def find_rules(documents: Documents) -> None:
    """Add the rules that apply to the project."""
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
    """The lists of globs with at least one that matches a file of the project."""
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
    """How many entries were checked, and whether a file below the top matches."""
    wanted, looked = compile_glob(pattern), 0
    for path in _files(top, fixed_folder(pattern)):
        looked += 1
        if wanted.fullmatch(path):
            return looked, True
        if looked >= most:
            break
    return looked, False


def _files(top: Path, start: str) -> Iterator[str]:
    """The files below a folder of the project, as paths relative to the project; links out of it are not followed."""
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


FILE = "SKILL.md"
_NUMBER = lazy_pattern(r"\d+")


def find_skills(documents: Documents) -> None:
    """Add the skills that an agent can use in this project."""
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
    """The folders in Claude Code's own list of installed plugins."""
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
    """The sort key of a plugin's version: its numbers, if it has any, then the time it was installed."""
    name = path.rpartition("/")[2]
    numbers = [int(number) for number in _NUMBER.findall(name.partition("-")[0])] if "." in name else []
    try:
        changed = os.stat(path).st_mtime
    except OSError:
        changed = 0.0
    return numbers, changed, name


FINDERS = SourceFinders(
    memory=find_auto_memory,
    rules=find_rules,
    skills=find_skills,
    session_folders=lambda places: places.make_once(ClaudeFolders).session_folders(),
    own_folders=lambda places: places.make_once(ClaudeFolders).own_folders,
)


MAX_TRANSCRIPTS = 40
"""Maximum transcripts of a folder checked for where they ran, the newest first."""
MAX_FOLDERS = 500
"""Maximum folders listed in the search for other projects with the same name; beyond that, the answer is no."""


def belongs_to_project(folder: Path, root: Path, places: SourcePlaces) -> bool:
    """Whether a folder that is named after a root of the project contains nothing of another project.

    It does if one of its transcripts ran in another directory with the same name, or if another repository, or a
    directory outside of any, has the same name. Since the name of a long path is cut, many paths may share it; a
    transcript then has to name the project.
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
    """Where the sessions of a folder ran, as far as they record it."""
    reader = ClaudeCodeReader()
    sessions = [one for one in reader.sessions(folder, Problems()) if one.path.parent == folder]
    sessions.sort(key=lambda one: one.modified, reverse=True)
    for session in sessions[:MAX_TRANSCRIPTS]:
        with suppress(OSError):
            if directory := directory_in(reader, session):
                yield directory


def _has_rival(root: Path, name: str, places: SourcePlaces) -> bool:
    """Whether a directory of another project gets the same name; also true if there are too many folders to check."""
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
    """The subfolders whose names match the beginning of the rest of a name, each with the remainder of the name."""
    try:
        names = os.listdir(folder)
    except OSError:  # A folder that cannot be listed can still be on the way to the project.
        names = [root.parts[len(folder.parts)]] if root.is_relative_to(folder) and root != folder else []
    for name in names:
        part = replace_with_dashes(name)
        if rest == part or rest.startswith(f"{part}-"):
            path = folder / name
            with suppress(OSError):
                if path.is_dir():
                    yield path, rest[len(part) + 1 :]


def _is_other_project(path: Path, places: SourcePlaces) -> bool:
    """Whether Claude Code would treat this directory as a project of its own."""
    real = resolve_path(path)
    return not places.is_in_project(str(real)) and git_top(real, places.home) in (None, real)


_NAME = "engram"


def find_plugins(home: Path) -> Iterator[Plugin]:
    """The enabled plugins of this name that have a script."""
    config = find_config(home, os.environ)
    listed = settings_of(config / "plugins" / "installed_plugins.json").get("plugins")
    enabled = settings_of(config / "settings.json").get("enabledPlugins")
    for name, entry in listed.items() if isinstance(listed, dict) else ():
        is_off = isinstance(enabled, dict) and enabled.get(name) is False
        last = entry[-1] if isinstance(entry, list) and entry else entry
        folder = Path(str(last.get("installPath") if isinstance(last, dict) else None))
        script = folder / "hooks" / "engram.sh"
        if name.partition("@")[0] == _NAME and not is_off and script.is_file():
            yield Plugin(folder=folder, script=script)
