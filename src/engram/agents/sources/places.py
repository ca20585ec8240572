"""Locations of sources: the project, its worktrees, and the folders of coding agents.

`FileAccess.may_read` is the only check of which files may be read.
"""

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from engram.agents.agent import CodingAgent, all_agents, home_of
from engram.disk import reading
from engram.model.errors import UnreadableData
from engram.model.lazy import cached_property, dataclass, field, lazy_pattern
from engram.readers.data import MAX_SETTINGS_BYTES, parse_json_object
from engram.store.scopes import git_folder, git_top, is_submodule_of, main_worktree, resolve_path, worktrees

TEXT_SUFFIXES = (".md", ".markdown", ".mdx", ".txt")
"""Suffixes of files that the user's own files may import from outside of a repository."""
_PRIVATE_NAME = lazy_pattern(
    r"/(?:\.git|\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials"
    r"|\.claude\.json[^/]*|\.credentials\.json|\.env(?:rc|\.[^/]*)?|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx|kdbx))(?:/|\Z)"
)


def has_private_name(path: str) -> bool:
    """Whether a path, relative to its allowed folder, names credentials or git's own files."""
    return _PRIVATE_NAME.search(path.lower()) is not None


def is_below(path: str, root: str) -> bool:
    """Whether a real path is a folder or inside it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


@dataclass(frozen=True)
class AgentFolder:
    """An agent's folder of the user's settings and instructions."""

    path: str
    managed: str
    """The folder of the organisation; "" if the agent has none."""
    private: frozenset[str]
    """Names in it that no file may import."""
    foreign: Mapping[str, int]
    """Folders in it with files of other authors, and how many levels below each a boundary is."""

    def is_own_file(self, path: str) -> bool:
        """Whether a file is the user's or the organisation's own."""
        return is_below(path, self.path) or bool(self.managed and is_below(path, self.managed))

    def boundary(self, folder: str) -> str:
        """The boundary around a folder with files of other authors; "" for none."""
        for name, depth in self.foreign.items():
            top = f"{self.path}/{name}"
            if folder != top and is_below(folder, top):
                return "/".join([top, *folder[len(top) + 1 :].split("/")[:depth]])
        return ""


@dataclass(frozen=True)
class FileAccess:
    """The boundaries between a project, the user's files and those of others, as real paths.

    A repository may come from anyone. A file that it imports or links to must be in the same repository. A plugin, and
    a working directory without a repository, are treated the same way. Only the user's own files outside of any
    repository may import files of the user's configuration, but never transcripts, histories, credentials or another
    project's files.

    All paths are real: links are resolved before the check, and a checked file is opened without following links.
    """

    project: str
    """The root of the project."""
    home: str
    folders: tuple[AgentFolder, ...]

    def may_read(self, folder: str, target: str) -> bool:
        """Whether a file in a folder may show a target, by an import or by a link in that folder."""
        if self._is_private(folder, target):
            return False
        root = self._boundary(folder)
        if root:
            return self._is_inside(root, target)
        if self.repository(target):
            return False
        return self._is_users(folder, target)

    def repository(self, path: str) -> str:
        """The root of a path's repository; "" for none, and for the user's own repository with the home or configuration in it."""
        at = path
        while at not in ("", "/", self.home):
            if at in self._tops:
                return self._tops[at]
            if os.path.lexists(f"{at}/.git"):
                break
            at = at.rpartition("/")[0]
        top = at if at not in ("", "/", self.home) and not self._is_of_user(at) else ""
        folder = path
        while len(folder) >= len(at) and folder and folder != "/":
            self._tops[folder] = top
            folder = folder.rpartition("/")[0]
        return top

    @cached_property
    def _tops(self) -> dict[str, str]:
        """The cached results of `repository`, by path."""
        return {}

    def _is_of_user(self, top: str) -> bool:
        """Whether a repository is the user's own, with their configuration, not a project."""
        return top != self.project and any(is_below(known.path, top) for known in self.folders)

    def _boundary(self, folder: str) -> str:
        """The folder outside of which files of a folder may not import; "" for files of the user."""
        if top := self.repository(folder):
            return top
        if top := next(filter(None, (known.boundary(folder) for known in self.folders)), ""):
            return top
        if any(known.is_own_file(folder) for known in self.folders) or is_below(self.home, self.project):
            return ""
        return self.project if is_below(folder, self.project) else ""

    def _is_inside(self, root: str, target: str) -> bool:
        """Whether a file is in the boundary's folder and in its repository."""
        top = self.repository(target)
        if not top and is_below(target, self.home) and not is_below(root, self.home):
            return False  # The home is inside the repository, but does not belong to it.
        if not top or top == root:
            return is_below(target, root)
        return _shared_folder(top) == _shared_folder(root) or is_submodule_of(Path(top), Path(root))

    def _is_users(self, folder: str, target: str) -> bool:
        """Whether a file outside of any repository may be imported by the user's own files: text, and not hidden."""
        if not target.lower().endswith(TEXT_SUFFIXES) and not Path(target).is_dir():
            return False
        own = [known for known in self.folders if known.is_own_file(folder)]
        if any(known.managed and is_below(target, known.managed) for known in own):
            return True
        for known in own or self.folders:
            if is_below(target, known.path):
                return "/." not in target[len(known.path) :]
        base = self.home if own else folder
        return base != "/" and is_below(target, base) and "/." not in target[len(base) :]

    def _is_private(self, folder: str, target: str) -> bool:
        """Whether no file may import this one: credentials, and agents' files about sessions and other projects."""
        for known in self.folders:
            if is_below(target, known.path):
                kept = target[len(known.path) + 1 :].split("/")[0]
                private = f"{known.path}/{kept}"
                # The files of one project's memory may import each other.
                if kept in known.private and not (folder.startswith(f"{private}/") and is_below(target, folder)):
                    return True
        common = os.path.commonpath((folder, target))
        return has_private_name(target[len(common.rstrip("/")) :])


def _shared_folder(top: str) -> str:
    """The git folder that a repository's worktrees share; the root itself if there is none."""
    found = git_folder(Path(top))
    return str(resolve_path(found)) if found is not None else top


Made = TypeVar("Made")


@dataclass(frozen=True)
class SourcePlaces:
    """The folders to search for a project's sources."""

    directory: Path
    """The agent's working directory."""
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    managed: Mapping[str, Path] = field(default_factory=dict)
    """An organisation's folders of instructions and settings, by agent, instead of the usual ones."""

    @cached_property
    def home(self) -> Path:
        """The user's home."""
        return home_of(self.environment)

    @cached_property
    def top(self) -> Path:
        """The root of the project: the repository's root, else the directory itself."""
        return git_top(self.directory, self.home) or self.directory.absolute()

    @cached_property
    def main(self) -> Path:
        """The root of the main worktree."""
        return main_worktree(self.top)

    @cached_property
    def roots(self) -> tuple[Path, ...]:
        """The roots of the project: this worktree, the main one and the others, both as named and resolved."""
        named = (self.top, self.main, *worktrees(self.main))
        return tuple(dict.fromkeys(one for path in named for one in (path, resolve_path(path))))

    @cached_property
    def access(self) -> FileAccess:
        """The rules for which files may show which others."""
        folders = [self._agent_folder(agent) for agent in all_agents() if agent.instructions.of_user]
        return FileAccess(real_folder(str(self.top)), real_folder(str(self.home)), tuple(folders))

    def _agent_folder(self, agent: CodingAgent) -> AgentFolder:
        managed, known = self.managed_folder(agent), agent.folder
        path = real_folder(str(self.user_folder(agent)))
        return AgentFolder(path, real_folder(str(managed)) if managed is not None else "", known.private, known.foreign)

    def upwards(self) -> Iterator[Path]:
        """The directory and every folder above it, nearest first; as named if it is reached through links."""
        at = self.directory.absolute()
        yield from (at, *at.parents)

    def user_folder(self, agent: CodingAgent) -> Path:
        """An agent's folder of the user's settings and instructions."""
        return agent.folder.find(self.home, self.environment)

    def managed_folder(self, agent: CodingAgent) -> Path | None:
        """An agent's folder of an organisation's settings and instructions."""
        find = agent.folder.find_managed
        return self.managed.get(agent.name) or (find() if find is not None else None)

    def make_once(self, make: "Callable[[SourcePlaces], Made]") -> "Made":
        """A function's result for these places, computed once."""
        if make not in self._results:
            self._results[make] = make(self)
        made: Made = self._results[make]
        return made

    @cached_property
    def _results(self) -> dict[Any, Any]:
        """The results of `make_once`."""
        return {}

    def is_in_project(self, directory: str) -> bool:
        """Whether a folder belongs to the project: one of its roots, or below one."""
        if directory not in self._answers:
            path = Path(directory)
            self._answers[directory] = bool(directory) and any(path.is_relative_to(root) for root in self.roots)
        return self._answers[directory]

    @cached_property
    def _answers(self) -> dict[str, bool]:
        """The cached results of `is_in_project`; a project's sessions ran in few folders."""
        return {}

    def find_real(self, folder: Path, name: str) -> str:
        """The real path of a file or folder below a folder; "" if it does not exist or a link on the way leads out of bounds."""
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
    """The real path of a folder.

    Results for it and its parents are cached, because most lookups are for neighbouring files.
    """
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
    """The real path of a plain file; "" if there is none."""
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
    """A settings file's data; empty if the file is missing or is not a JSON object."""
    try:
        with reading(path) as file:
            return parse_json_object(file.read(MAX_SETTINGS_BYTES))
    except (UnreadableData, OSError):
        return {}
