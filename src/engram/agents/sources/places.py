"""Where sources are: the project, its worktrees, and the folders of coding agents; and which paths may be read."""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from engram.agents.agent import CodingAgent, home_of
from engram.agents.registry import all_agents
from engram.agents.sources.access import AgentFolder, FileAccess
from engram.disk import reading
from engram.model.errors import UnreadableData
from engram.model.lazy import cached_property, dataclass, field
from engram.readers.json_reader import parse_json_object
from engram.readers.limits import MAX_SETTINGS_BYTES
from engram.store.repositories import git_top, main_worktree, resolve_path, worktrees

Made = TypeVar("Made")


@dataclass(frozen=True)
class SourcePlaces:
    """The folders in which a project's sources are looked for."""

    directory: Path
    """Where the agent works."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    managed: Mapping[str, Path] = field(default_factory=dict)
    """Folders of an organisation's instructions and settings, by agent, instead of the usual ones."""

    @cached_property
    def home(self) -> Path:
        """The user's home."""
        return home_of(self.environment)

    @cached_property
    def top(self) -> Path:
        """The root of the project: of the repository, else the directory itself."""
        return git_top(self.directory, self.home) or self.directory.absolute()

    @cached_property
    def main(self) -> Path:
        """The root of the main worktree."""
        return main_worktree(self.top)

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """The roots of the project: this worktree, the main one and the others, as they are named and resolved."""
        named = (self.top, self.main, *worktrees(self.main))
        return tuple(dict.fromkeys(one for path in named for one in (path, resolve_path(path))))

    @cached_property
    def access(self) -> FileAccess:
        """Which files may have which others shown."""
        folders = [self._agent_folder(agent) for agent in all_agents() if agent.instructions.of_user]
        return FileAccess(real_folder(str(self.top)), real_folder(str(self.home)), tuple(folders))

    def _agent_folder(self, agent: CodingAgent) -> AgentFolder:
        managed, known = self.managed_folder(agent), agent.folder
        path = real_folder(str(self.user_folder(agent)))
        return AgentFolder(path, real_folder(str(managed)) if managed is not None else "", known.private, known.foreign)

    def upwards(self) -> Iterator[Path]:
        """The directory and every folder above it, nearest first; where it is reached through links, as it is named."""
        at = self.directory.absolute()
        yield from (at, *at.parents)

    def user_folder(self, agent: CodingAgent) -> Path:
        """The folder of the user's settings and instructions for an agent."""
        return agent.folder.find(self.home, self.environment)

    def managed_folder(self, agent: CodingAgent) -> Path | None:
        """The folder of an organisation's settings and instructions for an agent."""
        find = agent.folder.find_managed
        return self.managed.get(agent.name) or (find() if find is not None else None)

    def make_once(self, make: "Callable[[SourcePlaces], Made]") -> "Made":
        """What a function makes of these places; made once."""
        if make not in self._results:
            self._results[make] = make(self)
        made: Made = self._results[make]
        return made

    @cached_property
    def _results(self) -> dict[Any, Any]:
        """What `make_once` has made."""
        return {}

    def is_in_project(self, directory: str) -> bool:
        """Whether a folder belongs to the project: one of its roots, or below one."""
        if directory not in self._answers:
            path = Path(directory)
            self._answers[directory] = bool(directory) and any(path.is_relative_to(root) for root in self.roots)
        return self._answers[directory]

    @cached_property
    def _answers(self) -> dict[str, bool]:
        """What `is_in_project` has answered: the sessions of a project ran in few folders."""
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
