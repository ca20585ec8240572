"""The scopes that a caller sees: a directory's project, its repository, and what the owner trusts there."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from engram.disk import json_object
from engram.model.errors import InvalidInput, NotFound
from engram.model.lazy import lazy_pattern
from engram.rules.scopes import MAX_SCOPE_LENGTH, MAX_SCOPE_PART_BYTES, ancestors, parse_scope, visible_scopes
from engram.store.repositories import (
    git_folder,
    git_top,
    main_worktree,
    nearest_folder,
    remote_of,
    resolve_path,
    rewrite_remote,
)
from engram.store.states import StateStore

TRUST_FILE = "trust.json"
LINKS_STATE = "scope-links"
"""The state with the links that a person confirmed."""
ScopeLinks = Mapping[str, str]
"""The scope that a person chose for a project, by the scope of its remote; the same scope if older memories do not belong to it."""
NO_LINKS: ScopeLinks = MappingProxyType({})
_DIGEST = 12
"""Characters of the digest at the end of a name that was cut."""
_PATH_DIGEST = 16
"""Characters of the digest of an address: too many for somebody to find another address with the same digest."""
_MAX_REMOTE = 1000
"""Characters of an address that can name a project."""
_NOT_IN_SCOPE = lazy_pattern(r"[^\w.@+-]+")
_SCHEME = lazy_pattern(r"([a-z][a-z0-9+.-]*)://", re.IGNORECASE)
_REMOTE = lazy_pattern(
    # Git decodes the whole address of ssh, so that a percent sign there can move the end of the host.
    r"(?:(?:https?|ftps?)://(?:[a-z0-9_.~!$&'()*+,;=:%-]*@)?|(?:ssh|git|git\+ssh|ssh\+git)://(?:[a-z0-9_.~+-]*@)?"
    r"|(?P<scp>(?:[a-z0-9_.~+-]+@)?))"
    r"(?P<host>[a-z0-9][a-z0-9_.-]*|\[[0-9a-f:.]+\])"
    r"(?(scp):/?|(?::[0-9]{1,5})?/)"
    r"(?P<path>[a-z0-9_.~+-]+(?:/[a-z0-9_.~+-]+)*)/?",
    re.ASCII | re.IGNORECASE,
)
"""A remote that every program reads the same way: scheme, user, host, port and path of plain characters, or git's `user@host:path`."""
_HOSTS = {"ssh.github.com": "github.com", "altssh.gitlab.com": "gitlab.com", "altssh.bitbucket.org": "bitbucket.org"}
"""Hosts that serve ssh on the port of https, and the host whose repositories they serve."""
_TWO_PART_HOSTS = frozenset({"github.com", "bitbucket.org", "codeberg.org"})
"""Hosts whose repositories are all `owner/name`: a longer path leads to a file that anyone may have put there with a pull request."""
_FILE_PARTS = frozenset({"-", "raw"})
"""Parts of a path after which GitLab, Gitea and others serve single files of a repository."""


def working_directory() -> Path:
    """The current directory; the user's home where it was removed meanwhile, as the worktree of a session may be."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path.home()


def scope_of(path: Path, trusted: Collection[str] = (), links: ScopeLinks = NO_LINKS) -> str | None:
    """The project scope of a directory: `.engram/config.toml`'s override, the repository's remote with its host, or its folder's name.

    The override counts only if its digest is in `trusted`, and a team store without a repository only if something is trusted:
    downloaded files must not choose whose memories they see. `links` are the person's own choice of another name for a remote's scope.
    None outside of any repository.
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
    """The project scope of a session that ran in a directory which may be gone since: then its remote's, or its folder's name."""
    path = Path(directory)
    if path.is_absolute() and path.is_dir():
        return scope_of(path, trusted, links)
    if remote and (scope := remote_scope(rewrite_remote(remote))):
        return links.get(scope, scope)
    return _project(_clean(path.name)) if path.name else None


def scope_links(store: StateStore) -> ScopeLinks:
    """The scopes that a person has chosen for projects; it may be some seconds old."""
    return links_of(store.state(LINKS_STATE))


def links_of(state: Mapping[str, object]) -> ScopeLinks:
    """The links in the state `LINKS_STATE`; what is not a pair of scopes is left out."""
    return {new: old for new, old in state.items() if isinstance(old, str)}


def earlier_scopes(path: Path, links: ScopeLinks = NO_LINKS) -> dict[str, str]:
    """The scopes of a directory's remote and their names before Engram put the host into them, as far as no person has decided about them."""
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
    """Whether a folder has a team store; a symbolic link does not count, since it leads out of the repository."""
    return is_plain_folder(top / ".engram") and is_plain_folder(top / ".engram" / "engrams")


def is_plain_folder(path: Path) -> bool:
    """Whether this is a folder and not a symbolic link."""
    return path.is_dir() and not path.is_symlink()


def is_within(folder: Path, path: str) -> bool:
    """Whether a path exists below a folder; one that leads out of it does not count."""
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
    """Everything the owner trusts: digests by folder."""
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
    from engram.readers.limits import decode_text

    _scope_in(data, path)
    return decode_text(data, where=str(path))


def _scope_in(data: bytes, path: Path) -> str | None:
    """The scope that a repository's settings name, if any. Raises `InvalidInput` if they are malformed."""
    from engram.readers.toml_reader import parse_toml

    scope = parse_toml(data, where=str(path)).get("scope")
    return parse_scope(scope) if isinstance(scope, str) else None


def _override(top: Path, trusted: Collection[str]) -> str | None:
    config = config_of(top)
    if not trusted or config.is_symlink() or not config.is_file():
        return None
    import hashlib

    from engram.readers.limits import MAX_SETTINGS_BYTES, read_limited

    try:
        data = read_limited(config, MAX_SETTINGS_BYTES)
        return _scope_in(data, config) if hashlib.sha256(data).hexdigest() in trusted else None
    except (InvalidInput, OSError):
        return None  # `attach_team` warns of the file; a clone's mistake stops no command


def _folder_scope(top: Path) -> str:
    """The scope of a repository without a remote. A `.git` that does not count tells nothing, so the path is part of the name."""
    if (top / ".git").exists() and git_folder(top) is None:
        return _path_scope(str(resolve_path(top)))
    return _project(_clean(main_worktree(top).name))


def _path_scope(path: str) -> str:
    """A scope for one path or address alone: no other one and no named remote has the same."""
    import hashlib

    digest = hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:_PATH_DIGEST]
    # Before an "@" there may be a password.
    name = _clean(path.rstrip("/").rpartition("/")[2].rpartition("@")[2].removesuffix(".git"))
    return _project(f"{name[: MAX_SCOPE_PART_BYTES // 4]}~{digest}")


def remote_scope(url: str) -> str | None:
    """`project:host:owner/name`, the same for ssh and https, with or without `.git`, user, password or port.

    The colon keeps the host from being a scope that all its projects see, and its projects from scopes named without a host. A remote
    on this machine, and one that programs may read in different ways, gets the name of its folder and a digest. None without a remote.
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
    """The host and the parts of the path of a remote, in lower case; None for a path on this machine and for unusual addresses.

    Nothing is cleaned or resolved. Git, curl and ssh disagree on where a host ends in an address with `?`, `#`, a second `@` or a
    backslash, and `..` or `%2e` make another path, so such an address names no project.
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
    """`project:owner/name`, as Engram named the scope of a remote before the host was part of it."""
    rest = re.sub(r"^[a-z+]+://", "", url.strip(), flags=re.IGNORECASE)
    rest = rest.split("?")[0].removesuffix("/").removesuffix(".git")
    path = rest.partition(":")[2] if "://" not in url and ":" in rest else rest.partition("/")[2]
    parts = [_clean(part) for part in path.split("/") if part not in ("", ".", "..")]
    parts = [part for part in parts if part][-3:]
    return _project("/".join(parts).lower()) if parts else None


def _project(name: str) -> str:
    """The scope of a project. A name that is too long for one is cut, and told from others that begin alike by a digest."""
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
    """The given scopes, or the directory's and the user's, each with its ancestors and the scopes linked to these, then global."""
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
