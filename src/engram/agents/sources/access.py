"""Which files a file may have shown: `FileAccess.may_read` is the one check for imports, links, rules and skills.

A repository may come from anyone. What one of its files names, by an import or a link, must be in the same repository. A plugin and a
working directory without a repository are treated alike. Only the user's own files outside of any repository may name files of the
user's configuration, and never transcripts, histories, credentials or another project's files.

All paths are real ones: links are resolved before the check, and a checked file is opened without following links.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from engram.model.lazy import cached_property, dataclass, lazy_pattern
from engram.store.repositories import git_folder, is_submodule_of, resolve_path

TEXT_SUFFIXES = (".md", ".markdown", ".mdx", ".txt")
"""Endings of files that the user's own files may name outside of a repository."""
_PRIVATE_NAME = lazy_pattern(
    r"/(?:\.git|\.ssh|\.gnupg|\.aws|\.azure|\.kube|\.docker|\.netrc|\.npmrc|\.pypirc|\.pgpass|\.git-credentials"
    r"|\.claude\.json[^/]*|\.credentials\.json|\.env(?:rc|\.[^/]*)?|id_(?:rsa|dsa|ecdsa|ed25519)|[^/]*\.(?:pem|key|p12|pfx|kdbx))(?:/|\Z)"
)


def has_private_name(path: str) -> bool:
    """Whether a path, from the folder in which it may be read, names credentials or git's own files."""
    return _PRIVATE_NAME.search(path.lower()) is not None


def is_below(path: str, root: str) -> bool:
    """Whether a real path is a folder or in it."""
    return path == root or path.startswith(f"{root.rstrip('/')}/")


@dataclass(frozen=True)
class AgentFolder:
    """The folder of the user's settings and instructions for an agent."""

    path: str
    managed: str
    """That of the organisation; "" if the agent knows none."""
    private: frozenset[str]
    """Names in it that nothing may name."""
    foreign: Mapping[str, int]
    """Folders in it with files of others, and how many folders below them a boundary is."""

    def is_own_file(self, path: str) -> bool:
        """Whether a file is the user's or the organisation's own."""
        return is_below(path, self.path) or bool(self.managed and is_below(path, self.managed))

    def boundary(self, folder: str) -> str:
        """The folder of others that a folder is in; "" for none."""
        for name, depth in self.foreign.items():
            top = f"{self.path}/{name}"
            if folder != top and is_below(folder, top):
                return "/".join([top, *folder[len(top) + 1 :].split("/")[:depth]])
        return ""


@dataclass(frozen=True)
class FileAccess:
    """The boundaries between a project, the user's files and those of others, as real paths."""

    project: str
    """The root of the project."""
    home: str
    folders: tuple[AgentFolder, ...]

    def may_read(self, folder: str, target: str) -> bool:
        """Whether a file in a folder may have a target shown, by an import, or by a link that is in the folder."""
        if self._is_private(folder, target):
            return False
        root = self._boundary(folder)
        if root:
            return self._is_inside(root, target)
        if self.repository(target):
            return False
        return self._is_users(folder, target)

    def repository(self, path: str) -> str:
        """The root of the repository that a path is in; "" for none, and for the user's own in which home or configuration is."""
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
        """What `repository` has answered, by path."""
        return {}

    def _is_of_user(self, top: str) -> bool:
        """Whether a repository is the user's own, of their configuration, and not one that they work in."""
        return top != self.project and any(is_below(known.path, top) for known in self.folders)

    def _boundary(self, folder: str) -> str:
        """The folder that files of a folder may name nothing outside of; "" for files of the user."""
        if top := self.repository(folder):
            return top
        if top := next(filter(None, (known.boundary(folder) for known in self.folders)), ""):
            return top
        if any(known.is_own_file(folder) for known in self.folders) or is_below(self.home, self.project):
            return ""
        return self.project if is_below(folder, self.project) else ""

    def _is_inside(self, root: str, target: str) -> bool:
        """Whether a file is in the folder and the repository that a boundary is the root of."""
        top = self.repository(target)
        if not top and is_below(target, self.home) and not is_below(root, self.home):
            return False  # the home is in the repository, but not of it
        if not top or top == root:
            return is_below(target, root)
        return _shared_folder(top) == _shared_folder(root) or is_submodule_of(Path(top), Path(root))

    def _is_users(self, folder: str, target: str) -> bool:
        """Whether a file outside of any repository is one that the user's own files may name: text, and not hidden."""
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
        """Whether nothing may name a file: credentials, and what agents keep about sessions and other projects."""
        for known in self.folders:
            if is_below(target, known.path):
                kept = target[len(known.path) + 1 :].split("/")[0]
                private = f"{known.path}/{kept}"
                # The files of one project's memory may name each other.
                if kept in known.private and not (folder.startswith(f"{private}/") and is_below(target, folder)):
                    return True
        common = os.path.commonpath((folder, target))
        return has_private_name(target[len(common.rstrip("/")) :])


def _shared_folder(top: str) -> str:
    """The git folder that the worktrees of a repository share; the root itself without one."""
    found = git_folder(Path(top))
    return str(resolve_path(found)) if found is not None else top
