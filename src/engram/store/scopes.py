"""Which scopes a caller's question sees."""

from collections.abc import Collection, Sequence
from pathlib import Path

from engram.rules.scopes import parse_scope, seen_from
from engram.store.scope_of import scope_of


def scopes_seen(scope: str | Sequence[str] | None, directory: Path, trusted: Collection[str] = ()) -> tuple[str, ...]:
    """The given scopes, or the directory's own, then the user's, save for an owner's; each with its ancestors, then global."""
    if scope is None:
        own = scope_of(directory, trusted)
        return seen_from([own] if own else [])
    given = [scope] if isinstance(scope, str) else list(scope)
    return seen_from([parse_scope(item) for item in given])
