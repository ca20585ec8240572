"""Where sources are: the project, its worktrees, the user's and the managed configuration of Claude Code; and which paths may be read."""

import os
import stat
import sys
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from engram.disk import reading
from engram.model.errors import UnreadableData
from engram.model.lazy import cached_property, dataclass, field, lazy_pattern
from engram.readers.json_reader import parse_json_object
from engram.readers.limits import MAX_SETTINGS_BYTES
from engram.recall.sources.access import FileAccess
from engram.store.repositories import git_top, main_worktree, resolve_path, worktrees

LONGEST_SLUG = 200
"""Characters of a project's folder name in Claude Code; a longer one is cut, and a hash is added."""
_NOT_PLAIN = lazy_pattern(r"[^a-zA-Z0-9]")
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"
_MANAGED = {"darwin": "/Library/Application Support/ClaudeCode", "win32": r"C:\Program Files\ClaudeCode"}
_OWN_NAME = "CLAUDE_CODE_PROJECT_DIR_NAME"


@dataclass(frozen=True)
class SourcePlaces:
    """The folders in which a project's sources are looked for."""

    directory: Path
    """Where the agent works."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    managed: Path = field(default_factory=lambda: Path(_MANAGED.get(sys.platform, "/etc/claude-code")))
    """The folder of an organisation's own CLAUDE.md and settings."""

    @cached_property
    def home(self) -> Path:
        """The user's home."""
        return Path(self.environment.get("HOME") or Path.home())

    @cached_property
    def config(self) -> Path:
        """The user's configuration of Claude Code."""
        return Path(self.environment.get("CLAUDE_CONFIG_DIR") or self.home / ".claude").expanduser()

    @cached_property
    def top(self) -> Path:
        """The root of the project: of the repository, else the directory itself."""
        return git_top(self.directory, self.home) or self.directory.absolute()

    @cached_property
    def main(self) -> Path:
        """The root of the main worktree, whose auto memory all worktrees share."""
        return main_worktree(self.top)

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """The roots of the project: this worktree, the main one and the others, as they are named and resolved."""
        named = (self.top, self.main, *worktrees(self.main))
        return tuple(dict.fromkeys(one for path in named for one in (path, resolve_path(path))))

    @cached_property
    def access(self) -> FileAccess:
        """Which files may have which others shown."""
        return FileAccess(*(real_folder(str(path)) for path in (self.top, self.home, self.config, self.managed)))

    def upwards(self) -> Iterator[Path]:
        """The directory and every folder above it, nearest first; where it is reached through links, as it is named."""
        at = self.directory.absolute()
        yield from (at, *at.parents)

    def project_configs(self) -> Iterator[Path]:
        """The `.claude` of the directory and of every folder above it, less the home's: that one is the user's, or nobody's."""
        own = {self.home / ".claude", self.config}
        yield from (folder / ".claude" for folder in self.upwards() if folder / ".claude" not in own)

    def project_folders(self) -> list[Path]:
        """The folders in which Claude Code keeps what belongs to this project: by its main worktree first, then by the directory."""
        projects = self.config / "projects"
        if named := self.environment.get(_OWN_NAME):
            return [projects / Path(named).name]
        paths = dict.fromkeys(
            (self.main, resolve_path(self.main), *self.roots, self.directory, resolve_path(self.directory))
        )
        folders = [folder for path in paths for folder in _named_for(projects, str(path))]
        return list(dict.fromkeys(folders))

    @cached_property
    def own_folders(self) -> list[Path]:
        """Those of the project's folders in which Claude Code keeps nothing of another project.

        Claude Code names a folder after the root of a repository, and different paths may have the same name. The user's own choice of a
        name is not checked.
        """
        from engram.recall.sources.ownership import belongs_to_project

        if self.environment.get(_OWN_NAME):
            return self.project_folders()
        projects = self.config / "projects"
        folders = dict.fromkeys(
            folder
            for path in (self.main, resolve_path(self.main), *self.roots)
            for folder in _named_for(projects, str(path))
            if folder.is_dir() and belongs_to_project(folder, path, self)
        )
        return list(folders)

    def holds(self, directory: str) -> bool:
        """Whether a folder belongs to the project: one of its roots, or below one."""
        if directory not in self._held:
            path = Path(directory)
            self._held[directory] = bool(directory) and any(path.is_relative_to(root) for root in self.roots)
        return self._held[directory]

    @cached_property
    def _held(self) -> dict[str, bool]:
        """What `holds` has answered: the sessions of a project ran in few folders."""
        return {}

    def find_real(self, folder: Path, name: str) -> str:
        """The real path of a file or folder below a folder; "" if there is none, or a link on the way leads where it may not."""
        at = real_folder(str(folder))
        for part in name.split("/"):
            path = f"{at.rstrip('/')}/{part}"
            target = os.path.realpath(path) if is_link(path) else path
            if target != path and not self.access.may_read(at, target):
                return ""
            at = target
        return at if os.path.lexists(at) else ""

    @cached_property
    def managed_settings(self) -> Mapping[str, Any]:
        """The settings of the organisation."""
        return settings_of(self.managed / "managed-settings.json")

    @cached_property
    def user_settings(self) -> Mapping[str, Any]:
        """The settings of the user."""
        return settings_of(self.config / "settings.json")


@lru_cache(maxsize=4096)
def real_folder(path: str) -> str:
    """Where a folder really is. Remembered, also for those above it: nearly all files are asked for with their neighbours."""
    above, _, name = path.rpartition("/")
    if not above or name in ("", ".", "..") or is_link(path):
        return os.path.realpath(path)
    return f"{real_folder(above).rstrip('/')}/{name}"


def is_link(path: str) -> bool:
    """Whether there is a symbolic link at a path."""
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False


def real_file(path: str) -> str:
    """Where a plain file really is, "" if there is none there."""
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            target = os.path.realpath(path)
            return target if stat.S_ISREG(os.stat(target).st_mode) else ""
    except (OSError, ValueError):
        return ""
    folder, _, name = path.rpartition("/")
    return f"{real_folder(folder or '/').rstrip('/')}/{name}" if stat.S_ISREG(found.st_mode) else ""


def settings_of(path: Path) -> Mapping[str, Any]:
    """A settings file; empty if there is none, or it has no JSON object."""
    try:
        with reading(path) as file:
            return parse_json_object(file.read(MAX_SETTINGS_BYTES))
    except (UnreadableData, OSError):
        return {}


def slug(path: str) -> str:
    """The name that Claude Code gives the folder of a project: every character that is no letter or digit becomes `-`."""
    name = replace_with_dashes(path)
    return name if len(name) <= LONGEST_SLUG else f"{name[:LONGEST_SLUG]}-{_hash(path)}"


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
    if len(name) <= LONGEST_SLUG:
        return [projects / name]
    begins = f"{name[:LONGEST_SLUG]}-"
    try:
        others = sorted(one for one in os.listdir(projects) if one.startswith(begins) and "-" not in one[len(begins) :])
    except OSError:
        others = []
    exact = slug(path)
    return [projects / one for one in dict.fromkeys((exact, *others)) if one == exact or len(others) == 1]
