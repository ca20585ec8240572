"""SQL shared by both backends.

Statements are in `.sql` files, each under a line `-- name: …`. Filters are a condition over documents `d`, which each
backend writes in its own dialect.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from engram.store.protocol import NEVER_TRUE_STATUSES, Filters

_NAMED = re.compile(r"^-- name: (\w+)\n(.*?)(?=^-- name: |\Z)", re.MULTILINE | re.DOTALL)


def named_statements(text: str) -> dict[str, str]:
    """The statements of a file by name."""
    return {name: body.strip() for name, body in _NAMED.findall(text)}


class FilterCondition(ABC):
    """Collects the parts of one condition."""

    EARLIEST: str
    """A moment before all others, as SQL."""

    def __init__(self, filters: Filters) -> None:
        self.parts: list[str] = []
        self._add_columns(filters)
        self._add_times(filters)
        self._add_validity(filters)
        for key, value in filters.metadata.items():
            self.add_metadata(key, value)

    @property
    def text(self) -> str:
        """The condition as SQL."""
        return " AND ".join(self.parts) or "TRUE"

    @abstractmethod
    def add(self, condition: str, *values: Any) -> None:
        """Add a condition with `{}` as the placeholder of each value."""

    @abstractmethod
    def among(self, column: str, values: Sequence[str] | None) -> None:
        """Require a column to have one of some values; no condition for None."""

    @abstractmethod
    def not_among(self, column: str, values: Sequence[str]) -> None:
        """Exclude some values of a column."""

    @abstractmethod
    def moment(self, at: datetime) -> Any:
        """Convert a moment to the form in this backend's columns."""

    @abstractmethod
    def add_roles(self, roles: Sequence[str]) -> None:
        """Require an event by one of these roles."""

    @abstractmethod
    def add_critical(self) -> None:
        """Require a memory in a critical slot."""

    @abstractmethod
    def add_without_cues(self) -> None:
        """Require a memory of the owner's own store without cues."""

    @abstractmethod
    def add_tags(self, tags: Sequence[str]) -> None:
        """Require every one of these tags, in lower case."""

    @abstractmethod
    def add_domain(self, domain: str, below: str) -> None:
        """Require this domain or one that begins with `below`."""

    @abstractmethod
    def add_metadata(self, key: str, value: object) -> None:
        """Require a value under a key of the caller's own data; a list matches by any of its items."""

    def _add_columns(self, filters: Filters) -> None:
        self.among("d.kind", filters.kinds)
        self.among("d.scope", filters.scopes)
        if filters.outside:
            self.add("d.scope LIKE {}", "project:%")
            self.not_among("d.scope", filters.outside)
        self.among("d.type", filters.types)
        self.among("d.parent", filters.parents)
        if filters.roles is not None:
            self.add_roles(filters.roles)
        if filters.pinned:
            self.add("d.pinned")
        if filters.critical:
            self.add_critical()
        if filters.tags:
            self.add_tags([tag.lower() for tag in filters.tags])
        if filters.without_cues:
            self.add_without_cues()
        if filters.except_ids:
            self.not_among("d.id", filters.except_ids)
        if filters.domain is not None:
            self.add_domain(filters.domain, filters.domain + "/")

    def _add_times(self, filters: Filters) -> None:
        for condition, at in (
            ("d.time >= {}", filters.since),
            ("d.time < {}", filters.until),
        ):
            if at is not None:
                self.add(condition, self.moment(at))
        if filters.known_at is not None:
            # `known` of a memory that became valid after it was stored is its beginning; `time` is not later than
            # when it was stored.
            moment = self.moment(filters.known_at)
            self.add("(d.known <= {} OR d.time <= {})", moment, moment)

    def _add_validity(self, filters: Filters) -> None:
        """Require validity at a moment. `as_of` asks for the past, so memories superseded since also count."""
        past = filters.as_of and filters.valid_at is not None
        if filters.valid_at is not None:
            moment = self.moment(filters.valid_at)
            since = f"coalesce(d.valid_from, d.time, d.known, {self.EARLIEST})" if past else "d.valid_from"
            begun = f"{since} <= {{}}"
            # A memory that was valid when it was stored is valid, even if the clock was set back since.
            self.add(begun if past else f"({since} IS NULL OR {begun} OR {since} <= d.known)", moment)
            self.add("(d.valid_until IS NULL OR d.valid_until > {})", moment)
        if past:
            self.not_among("d.status", NEVER_TRUE_STATUSES)
        else:
            self.among("d.status", filters.statuses)
