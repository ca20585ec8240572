"""The scopes that a caller sees: a directory's project, its repository, and what the owner trusts there."""

import re
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from engram.disk import json_object
from engram.model.errors import InvalidInput
from engram.model.lazy import lazy_pattern
from engram.rules.scopes import MAX_SCOPE_LENGTH, MAX_SCOPE_PART_BYTES, parse_scope, seen_from

TRUST_FILE = "trust.json"
_DIGEST = 12
"""Characters of the digest at the end of a name that was cut."""
_NOT_IN_SCOPE = lazy_pattern(r"[^\w.@+-]+")
_URL = lazy_pattern(r"url\s*[=:]\s*(.*)", re.IGNORECASE)


def working_directory() -> Path:
    """The current directory; the user's home where it was removed meanwhile, as the worktree of a session may be."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        return Path.home()


def scope_of(path: Path, trusted: Collection[str] = ()) -> str | None:
    """The project scope of a directory: `.engram/config.toml`'s override, the repository's remote, or its folder's name.

    The override counts only if its digest is in `trusted`, and a team store without a repository only if
    something is trusted: downloaded files must not choose whose memories they see. None outside of any repository.
    """
    top = repository_of(path) if trusted else git_top(path)
    if top is None:
        return None
    return _override(top, trusted) or _from_remote(top) or _project(_clean(main_worktree(top).name))


def session_scope(directory: str, remote: str = "", trusted: Collection[str] = ()) -> str | None:
    """The project scope of a session that ran in a directory which may be gone since: then its remote's, or its folder's name."""
    path = Path(directory)
    if path.is_absolute() and path.is_dir():
        return scope_of(path, trusted)
    if remote and (scope := normalised_remote(remote)):
        return scope
    return _project(_clean(path.name)) if path.name else None


def repository_of(path: Path) -> Path | None:
    """The nearest folder upwards that is a repository or has a team store."""
    return _nearest(path, lambda folder: (folder / ".git").exists() or _holds_team(folder))


def git_top(path: Path) -> Path | None:
    """The root of the worktree that a path is in; None outside of a repository."""
    return _nearest(path, lambda folder: (folder / ".git").exists())


def _nearest(path: Path, fits: Callable[[Path], bool]) -> Path | None:
    path = path.absolute()
    return next((folder for folder in (path, *path.parents) if fits(folder)), None)


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


def _git_folder(top: Path) -> Path | None:
    """The repository's own `.git`, shared by its worktrees."""
    git = top / ".git"
    if git.is_dir():
        return git
    if not git.is_file():
        return None
    try:
        target = Path(git.read_text("utf-8").partition("gitdir:")[2].strip())
        target = target if target.is_absolute() else top / target
        common = target / "commondir"
        return (target / common.read_text("utf-8").strip()).resolve() if common.is_file() else target
    except (OSError, UnicodeDecodeError):
        return None


def main_worktree(top: Path) -> Path:
    """The root of the main worktree, from that of any; the same without a repository."""
    git = _git_folder(top)
    return git.parent if git is not None and git.name == ".git" else top


def worktrees(top: Path) -> list[Path]:
    """The roots of the linked worktrees of a repository, from that of any of its worktrees."""
    git = _git_folder(top)
    found = []
    for entry in sorted(git.glob("worktrees/*/gitdir")) if git is not None else ():
        try:
            found.append(Path(entry.read_text("utf-8").strip()).parent)
        except (OSError, UnicodeDecodeError):
            continue
    return [path for path in found if path.is_absolute()]


def _from_remote(top: Path) -> str | None:
    git = _git_folder(top)
    if git is None or not (git / "config").is_file():
        return None
    try:
        urls = _urls((git / "config").read_text("utf-8"))
    except (OSError, UnicodeDecodeError):
        return None
    ordered = sorted(urls, key=lambda section: (section != 'remote "origin"', section))
    return next((scope for section in ordered if (scope := normalised_remote(urls[section]))), None)


def _urls(config: str) -> dict[str, str]:
    """The addresses in git's configuration, by section. `configparser` would take longer to import than everything else here."""
    urls: dict[str, str] = {}
    section = ""
    for line in map(str.strip, config.splitlines()):
        if line.startswith("[") and "]" in line:
            section = line[1 : line.rindex("]")]
        elif section.startswith("remote ") and (found := _URL.match(line)):
            urls[section] = found[1]
    return urls


def normalised_remote(url: str) -> str | None:
    """`project:owner/name`, the same for ssh and https, with or without `.git`, user or port."""
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


def scopes_seen(scope: str | Sequence[str] | None, directory: Path, trusted: Collection[str] = ()) -> tuple[str, ...]:
    """The given scopes, or the directory's and the user's, each with its ancestors, then global."""
    if scope is None:
        own = scope_of(directory, trusted)
        return seen_from([own] if own else [])
    given = [scope] if isinstance(scope, str) else list(scope)
    return seen_from([parse_scope(item) for item in given])
