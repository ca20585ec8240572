"""Links to older scopes that a person confirmed for a project, and the directories in which each scope is used.

A scope names its remote's host. In earlier versions `github.com:acme/api` and `evil.example:acme/api` were both `project:acme/api`.
Memories stored under such a name are seen again once a person has linked it. No record is rewritten.

A repository's own files say which remote it has, so a downloaded archive can claim any. A store of files remembers the first directory of
each scope, and another one is reported until a person accepts it.
"""

import contextlib
from collections.abc import Mapping
from pathlib import Path

from engram.model.errors import EngramError, InvalidInput
from engram.model.lazy import dataclass
from engram.model.report import Finding
from engram.rules.scopes import parse_scope
from engram.store.protocol import Filters, Store
from engram.store.scopes import LINKS_STATE, earlier_scopes, git_top, main_worktree, resolve_path, scope_links, scope_of
from engram.text.display import format_count

PLACES_STATE = "scope-places"
"""The state that lists the directories in which each scope was used."""
MAX_PLACES = 50
"""Maximum directories remembered per scope."""


@dataclass(frozen=True, slots=True)
class DirectoryScope:
    """The scope of a directory, and its open decisions."""

    scope: str
    """"" outside of any repository."""
    earlier: Mapping[str, int]
    """Scopes from before hosts were part of scope names that may belong here, and how many memories each has."""
    used_in: tuple[str, ...] = ()
    """The directories in which the scope was used so far, if this one is new to it."""

    def notices(self) -> list[str]:
        """The decisions that a person should make, one sentence each."""
        found = [
            f"{format_count(number, 'memory', 'memories')} of {old} may belong to this repository, whose scope is now {self.scope}. "
            f"Only a person can say: `engram scope --link {old}` if so, `engram scope --separate` if not"
            for old, number in self.earlier.items()
        ]
        if self.used_in:
            found.append(
                f"this directory claims the scope {self.scope}, which was used in {self.used_in[0]} so far. If it is not your own "
                "clone, do not work in it; if it is, run `engram scope --accept`"
            )
        return found


def directory_scope(store: Store, directory: Path) -> DirectoryScope:
    """The scope of a directory, and the decisions that are open."""
    trusted, links = store.trusted_here(directory), scope_links(store)
    scope = scope_of(directory, trusted, links) or ""
    earlier = {
        old: number
        for old in earlier_scopes(directory, links).values()
        if (number := store.count(Filters(scopes=(old,), statuses=None)))
    }
    return DirectoryScope(scope, earlier, used_elsewhere(store.state(PLACES_STATE), scope, directory))


def scope_notices(store: Store, directory: Path) -> list[str]:
    """The decisions that a person should make about a directory's scope; remembers the first directory of a scope.

    Errors of the store are not raised.
    """
    with contextlib.suppress(EngramError, OSError):
        found = directory_scope(store, directory)
        if found.scope and not found.used_in:
            accept_place(store, directory)
        return found.notices()
    return []


def scope_finding(store: Store, directory: Path) -> Finding:
    """The doctor's finding about the scope of a directory."""
    found = directory_scope(store, directory)
    notices = found.notices()
    if not notices:
        return Finding.of("scope", True, f"this directory has the scope {found.scope or 'global'}")
    return Finding.of("scope", True, "; ".join(notices), "run `engram scope` and decide")


def link_scope(store: Store, directory: Path, old: str) -> tuple[str, str]:
    """Let a directory's project, or its parent if `old` was the parent's name, use an older scope; returns both scopes.

    Only call it for a person's decision. Raises `InvalidInput` outside of a repository, and for a link to itself.
    """
    old = parse_scope(old)
    candidates = earlier_scopes(directory)
    new = next((new for new, name in candidates.items() if name == old), "") or _own_scope(directory)
    if new == old:
        raise InvalidInput(f"{old} is the scope of this directory already")
    store.change_state(LINKS_STATE, lambda before: {**before, new: old})
    return new, old


def separate_scope(store: Store, directory: Path) -> list[str]:
    """Note that older scopes do not belong to a directory's project; returns those scopes."""
    undecided = earlier_scopes(directory, scope_links(store))
    store.change_state(LINKS_STATE, lambda before: {**before, **{new: new for new in undecided}})
    return list(undecided.values())


def unlink_scope(store: Store, directory: Path) -> list[str]:
    """Undo the decisions about a directory's project and its parents; returns the scopes that were linked."""
    own = {_own_scope(directory), *earlier_scopes(directory)}
    links = scope_links(store)
    store.change_state(LINKS_STATE, lambda before: {new: old for new, old in before.items() if new not in own})
    return [links[new] for new in sorted(own) if links.get(new, new) != new]


def accept_place(store: Store, directory: Path) -> None:
    """Remember that a directory's scope is used there, and forget missing directories.

    A server remembers none, because it serves many machines.
    """
    from engram.store.local import has_files

    place = _place_of(directory)
    scope = scope_of(directory, store.trusted_here(directory), scope_links(store))
    if not has_files(store) or scope is None or not place:
        return
    if place not in _used_places(store.state(PLACES_STATE), scope):
        store.change_state(
            PLACES_STATE, lambda before: {**before, scope: [*_used_places(before, scope), place][-MAX_PLACES:]}
        )


def used_elsewhere(state: Mapping[str, object], scope: str, directory: Path) -> tuple[str, ...]:
    """The directories in which a scope was used so far, if this one is not among them; `state` is that of `PLACES_STATE`."""
    place, known = _place_of(directory), _used_places(state, scope)
    return tuple(known) if place and place not in known else ()


def _used_places(state: Mapping[str, object], scope: str) -> list[str]:
    """The directories in which a scope was used and that still exist."""
    listed = state.get(scope)
    return [one for one in listed if isinstance(one, str) and Path(one).is_dir()] if isinstance(listed, list) else []


def _place_of(directory: Path) -> str:
    """The directory that a repository's worktrees share; "" outside of any repository."""
    top = git_top(directory)
    return str(resolve_path(main_worktree(top))) if top is not None else ""


def _own_scope(directory: Path) -> str:
    found = scope_of(directory)
    if found is None:
        raise InvalidInput(
            f"{directory} is not in a repository; a scope is linked from the repository that it belongs to"
        )
    return found
