"""What a caller may see and means to see: scopes as this directory has them, and filters from plain arguments."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.times import aware
from engram.rules.scopes import parse_scope
from engram.store.protocol import LIVE, Filters, Store

FILTERS = frozenset(
    {
        "kinds",
        "scope",
        "types",
        "status",
        "tags",
        "domain",
        "since",
        "until",
        "as_of",
        "known_at",
        "metadata",
        "session",
        "roles",
        "critical",
    }
)
"""What `search`, `list` and `recall` can be narrowed by."""
HERE = "here"
"""Stands for the scope of the directory, wherever a scope is named."""
ScopeLike = str | Sequence[str] | None


@dataclass(slots=True)
class ScopeResolver:
    """The view from one directory."""

    store: Store
    directory: Path
    clock: Callable[[], datetime]

    def scopes_from(self, scope: ScopeLike) -> tuple[str, ...]:
        """The scopes an asker sees: those named and what they see, or those of the directory."""
        from engram.store.scopes import scopes_seen

        if scope is not None:
            scope = [self.scope_named(item) for item in ([scope] if isinstance(scope, str) else scope)]
        return scopes_seen(scope, self.directory, self._trusted())

    def scope_named(self, scope: str) -> str:
        """A scope, or `here` for that of the directory."""
        return self.here() if scope == HERE else parse_scope(scope)

    def here(self) -> str:
        """The scope of the directory; an error outside of any repository."""
        found = self.scope()
        if found is None:
            raise InvalidInput(
                f"{self.directory} lies in no repository, so there is no `here`; name a scope such as project:acme"
            )
        return found

    def scope(self) -> str | None:
        """The scope of the directory, if it lies in a repository."""
        from engram.store.scopes import scope_of

        return scope_of(self.directory, self._trusted())

    def _trusted(self) -> frozenset[str]:
        return self.store.trusted_here(self.directory)

    def filters(self, **given: Any) -> Filters:
        """The filters plain arguments mean; an unknown one is named."""
        unknown = sorted(set(given) - FILTERS)
        if unknown:
            raise InvalidInput(f"unknown filter {unknown[0]!r}; known: {', '.join(sorted(FILTERS))}")
        return self._filtered(**given)

    def _filtered(
        self,
        *,
        kinds: Sequence[str] = ("memory",),
        scope: ScopeLike = None,
        types: Sequence[str] | str | None = None,
        status: Sequence[str] | str | None = None,
        tags: Sequence[str] | str | None = None,
        domain: str | None = None,
        since: datetime | str | None = None,
        until: datetime | str | None = None,
        as_of: datetime | str | None = None,
        known_at: datetime | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        session: str | None = None,
        roles: Sequence[str] | str | None = None,
        critical: bool = False,
    ) -> Filters:
        scopes = _tuple(scope)
        return Filters(
            kinds=_tuple(kinds) or ("memory",),
            scopes=tuple(self.scope_named(s) for s in scopes) if scopes is not None else None,
            statuses=_statuses(status),
            types=_tuple(types),
            tags=_tuple(tags),
            domain=domain,
            since=aware(since),
            until=aware(until),
            valid_at=aware(as_of) or (self.clock() if status is None else None),
            as_of=as_of is not None,
            known_at=aware(known_at),
            parents=(session,) if session else None,
            roles=_tuple(roles),
            critical=critical,
            metadata=dict(metadata or {}),
        )


def _statuses(status: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if status is None:
        return LIVE
    return None if status == "any" else _tuple(status)


def _tuple(value: Sequence[str] | str | None) -> tuple[str, ...] | None:
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)
