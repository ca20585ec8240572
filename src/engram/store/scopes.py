"""The scopes that a caller sees: a directory's project, and the files that the owner trusts there.

A git repository's worktrees and remotes are read from its files; git is not run.
"""

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from engram.disk import json_object, reading
from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import lazy_pattern
from engram.rules.scopes import MAX_SCOPE_LENGTH, MAX_SCOPE_PART_BYTES, ancestors, parse_scope, visible_scopes
from engram.store.states import StateStore

MAX_POINTER_BYTES = 8 * 1024
"""Maximum bytes of a `.git`, `gitdir` or `commondir` file, which contains one path."""
MAX_CONFIG_BYTES = 1024 * 1024
MAX_WORKTREES = 500
"""Maximum worktrees of one repository that are checked."""
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
    """The nearest folder upwards, including the path itself, for which `fits` returns True.

    For a path in the user's home, the home and the folders above count only if they are the path itself: a repository
    of dotfiles in the home is not the project of files that the user downloaded. `home` defaults to the user's.
    """
    path = path.absolute()
    found = next((folder for folder in (path, *path.parents) if fits(folder)), None)
    return found if found is None or found == path or not _is_around_home(found, path, home or user_home()) else None


def _is_around_home(folder: Path, path: Path, home: Path | None) -> bool:
    """Whether a folder is the home that contains a path, or above that home."""
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
    """The root of the worktree that contains a path.

    None outside of a repository, and for a folder that only the home's repository contains.
    """
    return nearest_folder(path, lambda folder: (folder / ".git").exists(), home)


def git_folder(top: Path) -> Path | None:
    """The `.git` folder of a worktree's repository, shared by all worktrees.

    None if `.git` is a link, a folder that git would not accept, or a file that names a repository which does not name
    this worktree in return.

    A directory may come from anyone, so a `.git` file and an entry of `worktrees` count only if both sides name each
    other. Otherwise a download could pose as a worktree of one of the user's repositories, or claim one of them as its
    own worktree.
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
    """The root of the main worktree, given the root of any worktree; unchanged outside of a repository."""
    git = git_folder(top)
    return git.parent if git is not None and git.name == ".git" else top


def worktrees(top: Path) -> list[Path]:
    """The roots of a repository's linked worktrees, given the root of any of its worktrees."""
    git = git_folder(top)
    if git is None:
        return []
    shared = resolve_path(git)
    found = (_worktree_of(entry.parent) for entry in sorted(islice(git.glob("worktrees/*/gitdir"), MAX_WORKTREES)))
    return [path for path in found if path is not None and git_folder(path) == shared]


def is_submodule_of(top: Path, outer: Path) -> bool:
    """Whether a worktree is a submodule, at any depth, of another repository around it."""
    inner_folder, outer_folder = git_folder(top), git_folder(outer)
    if inner_folder is None or outer_folder is None:
        return False
    modules = resolve_path(outer_folder) / "modules"
    return resolve_path(inner_folder).is_relative_to(modules) and resolve_path(top).is_relative_to(resolve_path(outer))


def remote_of(top: Path) -> str:
    """The address of a repository's remote as git would use it: `origin`, else the first by name; "" if there is none.

    `url.<base>.insteadOf` of the repository and of the user is applied. Files that a configuration includes are not
    read.
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
    """Rewrite an address as git would, by the user's own `url.<base>.insteadOf`."""
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
    # Other characters that Python treats as line ends are part of a value.
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
    """Whether this is a folder `worktrees/<name>` of a repository and names the worktree in return."""
    if target.parent.name != "worktrees" or _worktree_of(target) != resolve_path(top):
        return False
    common = _read_pointer(target / "commondir")
    return bool(common) and resolve_path(target / common) == target.parent.parent


def _worktree_of(entry: Path) -> Path | None:
    """The worktree that a folder `worktrees/<name>` of a repository names, as a real path."""
    named = _read_pointer(entry / "gitdir")
    # A relative path is relative to the folder that contains the file.
    return resolve_path((entry / named).parent) if named and Path(named).name == ".git" else None


def _is_git_folder_of(target: Path, top: Path) -> bool:
    """Whether a git folder names a worktree as its own, as a submodule's does."""
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
    """The path with links resolved; unchanged if that fails, for example because of a loop of links."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError):
        return path


TRUST_FILE = "trust.json"
LINKS_STATE = "scope-links"
"""The state with the links that a person confirmed."""
ScopeLinks = Mapping[str, str]
"""The scope that a person chose for a project, by the scope of its remote.

It is the same scope if the person declined older memories.
"""
NO_LINKS: ScopeLinks = MappingProxyType({})
_DIGEST = 12
"""Characters of the digest at the end of a shortened name."""
_PATH_DIGEST = 16
"""Characters of an address's digest: too many for anyone to find another address with the same digest."""
_MAX_REMOTE = 1000
"""Maximum characters of an address that can name a project."""
_NOT_IN_SCOPE = lazy_pattern(r"[^\w.@+-]+")
_SCHEME = lazy_pattern(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_REMOTE = lazy_pattern(
    # Git decodes the whole address for ssh, so that a percent sign can move the end of the host.
    r"(?:(?:https?|ftps?)://(?:[a-z0-9_.~!$&'()*+,;=:%-]*@)?|(?:ssh|git|git\+ssh|ssh\+git)://(?:[a-z0-9_.~+-]*@)?"
    r"|(?P<scp>(?:[a-z0-9_.~+-]+@)?))"
    r"(?P<host>[a-z0-9][a-z0-9_.-]*|\[[0-9a-f:.]+\])"
    r"(?(scp):/?|(?::[0-9]{1,5})?/)"
    r"(?P<path>[a-z0-9_.~+-]+(?:/[a-z0-9_.~+-]+)*)/?",
    re.ASCII | re.IGNORECASE,
)
"""A remote that every program reads the same way.

It has a scheme, user, host, port and path of plain characters, or git's form `user@host:path`.
"""
_HOSTS = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org"}
"""Hosts that serve ssh on the https port, and the host whose repositories they serve."""
_TWO_PART_HOSTS = frozenset({"github.com", "bitbucket.org", "codeberg.org"})
"""Hosts whose repositories are all `owner/name`.

A longer path leads to a file that anyone may have added with a pull request.
"""
_FILE_PARTS = frozenset({"-", "raw"})
"""Path segments after which GitLab, Gitea and others serve single files of a repository."""


def working_directory() -> Path:
    """The current directory, or the user's home if it was removed, as the worktree of a session may be."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path.home()


def scope_of(path: Path, trusted: Collection[str] = (), links: ScopeLinks = NO_LINKS) -> str | None:
    """The project scope of a directory: from `.engram/config.toml`, the repository's remote with its host, or its folder's name.

    `.engram/config.toml` counts only if its digest is in `trusted`, and a team store without a repository only if any
    file is trusted: downloaded files must not choose whose memories they see. `links` are the scopes that a person has
    chosen for remotes' scopes. None outside of any repository.
    """
    top = repository_of(path) if trusted else git_top(path)
    if top is None:
        return None
    if chosen := _override(top, trusted):
        return chosen
    found = remote_scope(remote_of(top)) or _folder_scope(top)
    return links.get(found, found)


def session_scope(
    directory: str, remote: str = "", trusted: Collection[str] = (), links: ScopeLinks = NO_LINKS
) -> str | None:
    """The project scope of the directory in which a session ran.

    If the directory no longer exists, it is that of its remote or of its folder's name.
    """
    path = Path(directory)
    if path.is_absolute() and path.is_dir():
        return scope_of(path, trusted, links)
    if remote and (scope := remote_scope(rewrite_remote(remote))):
        return links.get(scope, scope)
    return _project(_clean(path.name)) if path.name else None


def scope_links(store: StateStore) -> ScopeLinks:
    """The scopes that a person has chosen for projects; may be a few seconds old."""
    return links_of(store.state(LINKS_STATE))


def links_of(state: Mapping[str, object]) -> ScopeLinks:
    """The links in the state `LINKS_STATE`; entries that are not a pair of scopes are left out."""
    return {new: old for new, old in state.items() if isinstance(old, str)}


def earlier_scopes(path: Path, links: ScopeLinks = NO_LINKS) -> dict[str, str]:
    """The scopes of a directory's remote, with their former names without the host, that no person has decided about."""
    top = git_top(path)
    url = remote_of(top) if top is not None else ""
    now, before = remote_scope(url), _scope_without_host(url)
    if now is None or before is None:
        return {}
    found = {now: before}
    if ":" in now.partition(":")[2] and len(ancestors(now)) == len(ancestors(before)):
        found = dict(zip(ancestors(now), ancestors(before), strict=True))
    return {new: old for new, old in found.items() if new not in links and new != old}


def repository_of(path: Path) -> Path | None:
    """The nearest folder upwards that is a repository or has a team store."""
    return nearest_folder(path, lambda folder: (folder / ".git").exists() or _holds_team(folder))


def _holds_team(top: Path) -> bool:
    """Whether a folder has a team store; a symbolic link does not count, since it may lead out of the repository."""
    return is_plain_folder(top / ".engram") and is_plain_folder(top / ".engram" / "engrams")


def is_plain_folder(path: Path) -> bool:
    """Whether this is a folder and not a symbolic link."""
    return path.is_dir() and not path.is_symlink()


def is_within(folder: Path, path: str) -> bool:
    """Whether a path exists below a folder; absolute paths and paths with `..` do not count."""
    named = Path(path)
    if named.is_absolute() or ".." in named.parts:
        return False
    try:
        return (folder / named).exists()
    except (OSError, ValueError):
        return False


def trusted_of(state: Path, directory: Path) -> frozenset[str]:
    """Digests of the files the owner trusts in a directory's repository; `state` is the store's state folder."""
    top = repository_of(directory)
    if top is None:
        return frozenset()
    return frozenset(trusted_by_folder(state).get(str(top / ".engram" / "engrams"), ()))


def trusted_by_folder(state: Path) -> dict[str, list[str]]:
    """All trusted files: digests by folder."""
    try:
        digests = json_object((state / TRUST_FILE).read_bytes()) if (state / TRUST_FILE).is_file() else {}
    except OSError:
        return {}
    return {
        folder: [one for one in listed if isinstance(one, str)]
        for folder, listed in digests.items()
        if isinstance(listed, list)
    }


def settings_folder(directory: Path) -> Path:
    """The folder of a repository's team store, which may not exist. Raises `NotFound` without a repository or `.engram`."""
    top = repository_of(directory)
    if top is None or not is_plain_folder(top / ".engram"):
        raise NotFound(f"{directory} is not in a repository with team memories or settings (.engram)")
    return top / ".engram" / "engrams"


def team_folder(path: Path) -> Path | None:
    """The team store of a directory's repository, or None."""
    top = repository_of(path)
    return top / ".engram" / "engrams" if top is not None and _holds_team(top) else None


def config_of(top: Path) -> Path:
    """The path of a repository's settings for Engram."""
    return top / ".engram" / "config.toml"


def decoded_settings(data: bytes, path: Path) -> str:
    """The text of a repository's settings. Raises `InvalidInput` if they are malformed."""
    from engram.readers.data import decode_text

    _scope_in(data, path)
    return decode_text(data, where=str(path))


def _scope_in(data: bytes, path: Path) -> str | None:
    """The scope in a repository's settings, if any. Raises `InvalidInput` if they are malformed."""
    from engram.readers.data import parse_toml

    scope = parse_toml(data, where=str(path)).get("scope")
    return parse_scope(scope) if isinstance(scope, str) else None


def _override(top: Path, trusted: Collection[str]) -> str | None:
    config = config_of(top)
    if not trusted or config.is_symlink() or not config.is_file():
        return None
    import hashlib

    from engram.readers.data import MAX_SETTINGS_BYTES, read_limited

    try:
        data = read_limited(config, MAX_SETTINGS_BYTES)
        return _scope_in(data, config) if hashlib.sha256(data).hexdigest() in trusted else None
    except (InvalidInput, OSError):
        return None  # `attach_team` warns about the file; a clone's mistake must not stop any command.


def _folder_scope(top: Path) -> str:
    """The scope of a repository without a remote. An invalid `.git` is not evidence, so the path is part of the name."""
    if (top / ".git").exists() and git_folder(top) is None:
        return _path_scope(str(resolve_path(top)))
    return _project(_clean(main_worktree(top).name))


def _path_scope(path: str) -> str:
    """A unique scope for one path or address, different from all named remotes'."""
    import hashlib

    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:_PATH_DIGEST]
    # The text before an "@" may contain a password.
    name = _clean(path.rstrip("/").rpartition("/")[2].rpartition("@")[2].removesuffix(".git"))
    return _project(f"{name[: MAX_SCOPE_PART_BYTES // 4]}~{digest}")


def remote_scope(url: str) -> str | None:
    """`project:host:owner/name`, the same for ssh and https, with or without `.git`, user, password or port.

    The colon keeps the host from being a parent scope visible to all its projects, and keeps its projects apart from
    scopes named without a host. A remote on this machine, or one that programs may read in different ways, gets the
    name of its folder and a digest. None without a remote.
    """
    url = url.strip()
    if not url:
        return None
    scheme = _SCHEME.match(url)
    if scheme is not None and scheme[1].lower() == "file":
        url = url[scheme.end() :]
    elif found := _parse_remote(url):
        host, parts = found
        return _project(f"{host}:{'/'.join(parts)}")
    return _path_scope(url.rstrip("/"))


def _parse_remote(url: str) -> tuple[str, list[str]] | None:
    """The host and path segments of a remote, in lower case; None for a path on this machine and for unusual addresses.

    Nothing is cleaned or resolved. Git, curl and ssh disagree on where a host ends in an address with `?`, `#`, a
    second `@` or a backslash, and `..` or `%2e` make another path, so such an address does not name a project.
    """
    found = _REMOTE.fullmatch(url) if len(url) <= _MAX_REMOTE else None
    if found is None:
        return None
    host = found["host"].lower().removesuffix(".")
    host = _HOSTS.get(host, host)
    *owners, name = found["path"].lower().split("/")
    parts = [*owners, name.removesuffix(".git")]
    is_file = _FILE_PARTS.intersection(parts[2:]) or (host in _TWO_PART_HOSTS and len(parts) != 2)
    if ".." in host or is_file or not {"", ".", ".."}.isdisjoint(parts):
        return None
    return host.strip("[]").replace(":", "_"), parts


def _scope_without_host(url: str) -> str | None:
    """`project:owner/name`, the scope of a remote before the host was part of the name."""
    rest = re.sub(r"^[a-z+]+://", "", url.strip(), flags=re.IGNORECASE)
    rest = rest.split("?")[0].removesuffix("/").removesuffix(".git")
    path = rest.partition(":")[2] if "://" not in url and ":" in rest else rest.partition("/")[2]
    parts = [_clean(part) for part in path.split("/") if part not in ("", ".", "..")]
    parts = [part for part in parts if part][-3:]
    return _project("/".join(parts).lower()) if parts else None


def _project(name: str) -> str:
    """The scope of a project. A name that is too long is cut, with a digest to keep it unique."""
    scope = f"project:{name}"
    if len(scope) <= MAX_SCOPE_LENGTH and all(len(part.encode()) <= MAX_SCOPE_PART_BYTES for part in name.split("/")):
        return scope
    import hashlib

    digest = hashlib.sha256(name.encode()).hexdigest()[:_DIGEST]
    room = min(MAX_SCOPE_LENGTH, MAX_SCOPE_PART_BYTES) - len("project:-") - _DIGEST
    return f"project:{name.encode()[:room].decode(errors='ignore').rstrip('/')}-{digest}"


def _clean(name: str) -> str:
    return _NOT_IN_SCOPE.sub("-", name).strip("-.") or "project"


def scopes_seen(
    scope: str | Sequence[str] | None,
    directory: Path,
    trusted: Collection[str] = (),
    links: ScopeLinks = NO_LINKS,
) -> tuple[str, ...]:
    """The given scopes, or the directory's and the user's, each with its ancestors and the scopes linked to these; then global."""
    if scope is None:
        own = scope_of(directory, trusted, links)
        given = [own] if own else []
    else:
        given = [parse_scope(item) for item in ([scope] if isinstance(scope, str) else scope)]
    return _with_linked(visible_scopes(given), links)


def _with_linked(scopes: Iterable[str], links: ScopeLinks) -> tuple[str, ...]:
    """The scopes, each followed by those that a person linked to it."""
    if not links:
        return tuple(scopes)
    seen: dict[str, None] = {}
    for scope in scopes:
        seen.setdefault(scope)
        for new, old in links.items():
            if scope == old:
                seen.update(dict.fromkeys(ancestors(new)))
            elif scope == new:
                seen.update(dict.fromkeys(ancestors(old)))
    return tuple(seen)
