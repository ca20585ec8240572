"""A directory's git repository, read from its files: its worktrees, submodules and remotes. Git is not run.

A directory may come from anyone, so a `.git` file and an entry of `worktrees` count only if both sides name each other. Otherwise a
download could pose as a worktree of one of the user's repositories, or claim one of them as its own worktree.
"""

import os
import stat
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from engram.disk import reading
from engram.model.lazy import lazy_pattern

MAX_POINTER_BYTES = 8 * 1024
"""Of a `.git`, `gitdir` or `commondir` file: it contains one path."""
MAX_CONFIG_BYTES = 1024 * 1024
MAX_WORKTREES = 500
"""Worktrees of one repository that are looked at."""
_HEAD = lazy_pattern(r"ref:\s*refs/\S+|[0-9a-f]{40}(?:[0-9a-f]{24})?")
_ESCAPES = {"n": "\n", "t": "\t", "b": "\b"}
_SECTION = lazy_pattern(r'\[\s*([\w.-]+)(?:\s+"((?:[^"\\]|\\.)*)")?\s*\](.*)')


class ConfigValue(NamedTuple):
    """One assignment in git's configuration; section and key are in lower case."""

    section: str
    subsection: str
    key: str
    value: str


def nearest_folder(path: Path, fits: Callable[[Path], bool], home: Path | None = None) -> Path | None:
    """The nearest folder upwards, from the path itself, for which `fits` returns True.

    For a path in the user's home, the home and the folders above count only if they are the path itself: a repository of dotfiles in the
    home is not the project of what the user downloads. `home` is the user's unless given.
    """
    path = path.absolute()
    found = next((folder for folder in (path, *path.parents) if fits(folder)), None)
    return found if found is None or found == path or not _is_around_home(found, path, home or user_home()) else None


def _is_around_home(folder: Path, path: Path, home: Path | None) -> bool:
    """Whether a folder is the home that a path is in, or above it."""
    if home is None:
        return False
    real = resolve_path(home)
    return real.is_relative_to(resolve_path(folder)) and resolve_path(path).is_relative_to(real)


def user_home() -> Path | None:
    """The user's home; None if there is none."""
    try:
        return Path.home()
    except RuntimeError:
        return None


def git_top(path: Path, home: Path | None = None) -> Path | None:
    """The root of the worktree that a path is in; None outside of a repository, and for a folder that only the home's repository contains."""
    return nearest_folder(path, lambda folder: (folder / ".git").exists(), home)


def git_folder(top: Path) -> Path | None:
    """The `.git` folder of a worktree's repository, shared by all worktrees.

    None if `.git` is a link, a folder that git would not accept, or a file that names a repository which does not name this worktree in
    return.
    """
    git = top / ".git"
    try:
        mode = git.lstat().st_mode
    except OSError:
        return None
    if stat.S_ISDIR(mode):
        return git if _is_git_folder(git) else None
    named = _read_pointer(git).partition("gitdir:")[2].strip() if stat.S_ISREG(mode) else ""
    if not named:
        return None
    target = resolve_path(top / named)
    found = target.parent.parent if _lists_worktree(target, top) else target
    is_named = found != target or _is_git_folder_of(target, top)
    return found if is_named and _is_git_folder(found) else None


def main_worktree(top: Path) -> Path:
    """The root of the main worktree, from that of any; the same without a repository."""
    git = git_folder(top)
    return git.parent if git is not None and git.name == ".git" else top


def worktrees(top: Path) -> list[Path]:
    """The roots of the linked worktrees of a repository, from that of any of its worktrees."""
    git = git_folder(top)
    if git is None:
        return []
    shared = resolve_path(git)
    found = (_worktree_of(entry.parent) for entry in sorted(islice(git.glob("worktrees/*/gitdir"), MAX_WORKTREES)))
    return [path for path in found if path is not None and git_folder(path) == shared]


def is_submodule_of(top: Path, outer: Path) -> bool:
    """Whether a worktree is a submodule, at any depth, of the repository of another one around it."""
    inner_folder, outer_folder = git_folder(top), git_folder(outer)
    if inner_folder is None or outer_folder is None:
        return False
    modules = resolve_path(outer_folder) / "modules"
    return resolve_path(inner_folder).is_relative_to(modules) and resolve_path(top).is_relative_to(resolve_path(outer))


def remote_of(top: Path) -> str:
    """The address of a repository's remote, as git would use it: that of `origin`, else of the first by name; "" if there is none.

    `url.<base>.insteadOf` of the repository and of the user is applied. Files that a configuration includes are not read.
    """
    git = git_folder(top)
    values = list(read_config(git / "config")) if git is not None else []
    urls: dict[str, str] = {}
    for one in values:
        if (one.section, one.key) == ("remote", "url") and one.value:
            urls.setdefault(one.subsection, one.value)
    if not urls:
        return ""
    return _rewrite(urls[min(urls, key=lambda name: (name != "origin", name))], values)


def rewrite_remote(url: str) -> str:
    """An address as git would use it, after the user's own `url.<base>.insteadOf`."""
    return _rewrite(url, [])


def _rewrite(url: str, values: list[ConfigValue]) -> str:
    rules = [
        (one.value, one.subsection)
        for one in (*values, *_user_values())
        if (one.section, one.key) == ("url", "insteadof") and one.value and url.startswith(one.value)
    ]
    if not rules:
        return url
    prefix, base = max(rules, key=lambda rule: len(rule[0]))
    return f"{base}{url[len(prefix) :]}"


def _user_values() -> Iterator[ConfigValue]:
    """The user's and the system's configuration of git; these files may be links, since they are the user's own."""
    chosen = os.environ.get("GIT_CONFIG_GLOBAL")
    home = Path(os.environ.get("HOME") or "/nonexistent")
    xdg = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    paths = [Path(chosen)] if chosen else [home / ".gitconfig", xdg / "git" / "config"]
    if not os.environ.get("GIT_CONFIG_NOSYSTEM"):
        paths.append(Path("/etc/gitconfig"))
    for path in paths:
        yield from read_config(resolve_path(path))


def read_config(path: Path) -> Iterator[ConfigValue]:
    """The assignments of a configuration file; none if it cannot be read. `configparser` does not know git's quoting."""
    try:
        with reading(path) as file:
            text = file.read(MAX_CONFIG_BYTES).decode("utf-8")
    except (OSError, ValueError):
        return
    section = subsection = ""
    # Other characters that Python takes for the end of a line are part of a value.
    for line in map(str.strip, text.split("\n")):
        if found := _SECTION.match(line):
            section, subsection = found[1].lower(), (found[2] or "").replace('\\"', '"').replace("\\\\", "\\")
            line = found[3].strip()
        key, equals, value = line.partition("=")
        if equals and not key.startswith(("#", ";")):
            yield ConfigValue(section, subsection, key.strip().lower(), _unquote(value))


def _unquote(value: str) -> str:
    """A value without quotation marks, escapes and the comment after it."""
    out, quoted = [], False
    chars = iter(value.strip())
    for char in chars:
        if char == "\\":
            char = next(chars, "")
            out.append(_ESCAPES.get(char, char))
        elif char == '"':
            quoted = not quoted
        elif char in "#;" and not quoted:
            break
        else:
            out.append(char)
    return "".join(out).strip()


def _is_git_folder(folder: Path) -> bool:
    """Whether git would accept a folder as a repository: it has a valid `HEAD`, `objects` and `refs`."""
    is_valid = _HEAD.fullmatch(_read_pointer(folder / "HEAD")) is not None
    return is_valid and (folder / "objects").is_dir() and (folder / "refs").is_dir()


def _lists_worktree(target: Path, top: Path) -> bool:
    """Whether this is a folder `worktrees/<name>` of a repository, and names a worktree in return."""
    if target.parent.name != "worktrees" or _worktree_of(target) != resolve_path(top):
        return False
    common = _read_pointer(target / "commondir")
    return bool(common) and resolve_path(target / common) == target.parent.parent


def _worktree_of(entry: Path) -> Path | None:
    """The worktree that a folder `worktrees/<name>` of a repository names, as a real path."""
    named = _read_pointer(entry / "gitdir")
    # A relative path starts at the folder that contains it.
    return resolve_path((entry / named).parent) if named and Path(named).name == ".git" else None


def _is_git_folder_of(target: Path, top: Path) -> bool:
    """Whether a git folder names a worktree as its own, as that of a submodule does."""
    for one in read_config(target / "config"):
        if (one.section, one.subsection, one.key) == ("core", "", "worktree"):
            return resolve_path(target / one.value) == resolve_path(top)
    return False


def _read_pointer(path: Path) -> str:
    try:
        with reading(path) as file:
            return file.read(MAX_POINTER_BYTES).decode("utf-8").strip()
    except (OSError, ValueError):
        return ""


def resolve_path(path: Path) -> Path:
    """Where a path leads; the path itself if that cannot be determined, such as in a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path
