"""Scopes: `kind:name[/part…]`, each seeing its ancestors and the global scope (DESIGN §11)."""

from collections.abc import Collection, Iterable, Sequence

from engram.model.errors import InvalidInput
from engram.model.lazy import lazy_pattern

GLOBAL = "global"
USER = "user"
EVERYWHERE = "everywhere"
"""As the scope of a read, all scopes of the store."""
MAX_SCOPE_LENGTH = 200
MAX_SCOPE_PART_BYTES = 200
"""A part becomes a folder name, and most file systems limit names to 255 bytes."""
_PEOPLE = ("agent:", "user:")
_BARE = frozenset({GLOBAL, USER, "local", "public"})
_KIND = lazy_pattern(r"[a-z][a-z0-9_-]{0,31}\Z")
_FORBIDDEN = lazy_pattern(r"[\x00-\x1f\x7f\\]|[\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def parse_scope(text: str) -> str:
    """The scope in canonical form. Raises `InvalidInput` if it is invalid."""
    scope = text.strip()
    if scope in _BARE:
        return scope
    if len(scope) > MAX_SCOPE_LENGTH:
        raise InvalidInput(f"the scope has {len(scope)} characters (maximum {MAX_SCOPE_LENGTH})")
    kind, colon, name = scope.partition(":")
    if not colon or not _KIND.match(kind):
        raise InvalidInput(f"scope {text!r} is not of the form kind:name[/part…], such as project:acme/api, or global")
    if _FORBIDDEN.search(name):
        raise InvalidInput(f"scope {text!r} contains a control character or a backslash")
    parts = name.split("/")
    if any(part.strip() != part or part in ("", ".", "..") for part in parts):
        raise InvalidInput(f"scope {text!r} has an empty part, '.' or '..' in its name")
    return scope


def ancestors(scope: str) -> tuple[str, ...]:
    """The scope itself, then each of its ancestors: project:acme/api, project:acme."""
    kind, colon, name = scope.partition(":")
    if not colon:
        return (scope,)
    parts = name.split("/")
    return tuple(f"{kind}:{'/'.join(parts[:i])}" for i in range(len(parts), 0, -1))


def is_scope_visible(scopes: Collection[str] | None, scope: str) -> bool:
    """Whether `scope` is visible from these scopes; None sees everything."""
    return scopes is None or scope in scopes


class OwnerScopes(tuple[str, ...]):
    """The scopes that a named owner sees; `own` has those they may change, which are the ones they named and not wider ones."""

    own: frozenset[str]

    def __new__(cls, seen: Iterable[str], own: Iterable[str]) -> "OwnerScopes":
        """Create the tuple of `seen` scopes, in the order in which a query uses them."""
        made = super().__new__(cls, seen)
        made.own = frozenset(own)
        return made


def changeable_scopes(scopes: Collection[str] | None) -> Collection[str] | None:
    """The scopes in which a caller may change records; None is all of them."""
    return sorted(scopes.own) if isinstance(scopes, OwnerScopes) else scopes


def may_change(scopes: Collection[str] | None, scope: str) -> bool:
    """Whether a caller who sees these scopes may change what belongs to `scope`."""
    own = changeable_scopes(scopes)
    return own is None or scope in own


def wider_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    """The ordered set of scopes a query from these scopes sees: each with its ancestors, then global."""
    seen = dict.fromkeys(wider for scope in scopes for wider in ancestors(scope))
    seen.setdefault(GLOBAL)
    return tuple(seen)


def visible_scopes(scopes: Sequence[str]) -> tuple[str, ...]:
    """The scopes visible from these: the scopes with their ancestors, the store owner's `user` scope, then global.

    `agent:shop/ana` and `user:ana` are separate people, so they do not see the store's `user`.
    """
    others = scopes and all(map(is_person, scopes))
    return wider_scopes(scopes if others else [*scopes, USER])


def is_person(scope: str) -> bool:
    """Whether a scope belongs to an agent or one of its users, rather than to a place such as a project."""
    return scope.startswith(_PEOPLE)
