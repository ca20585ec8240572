"""Filters as a WHERE clause over `docs d`."""

import json
from collections.abc import Sequence
from datetime import datetime

from engram.store.filters import FilterCondition
from engram.store.protocol import Filters

Clause = tuple[str, list[object]]
_LARGEST = 2**63 - 1


def where(filters: Filters) -> Clause:
    """The condition and its parameters."""
    found = SqliteCondition(filters)
    return found.text, found.values


class SqliteCondition(FilterCondition):
    """A condition with `?` for each value."""

    EARLIEST = "0"

    def __init__(self, filters: Filters) -> None:
        self.values: list[object] = []
        super().__init__(filters)

    def add(self, condition: str, *values: object) -> None:
        self.parts.append(condition.format(*"?" * len(values)))
        self.values.extend(values)

    def among(self, column: str, values: Sequence[str] | None) -> None:
        if values is not None:
            self.add(f"{column} IN ({', '.join(['{}'] * len(values))})", *values)
            if column == "d.parent":
                self.add("d.parent <> ''")  # said so that SQLite may use the index, which leaves these out

    def not_among(self, column: str, values: Sequence[str]) -> None:
        self.add(f"{column} NOT IN ({', '.join(['{}'] * len(values))})", *values)

    def moment(self, at: datetime) -> float:
        return at.timestamp()

    def add_roles(self, roles: Sequence[str]) -> None:
        self.among("d.role", roles)

    def add_critical(self) -> None:
        self.add("d.critical <> ''")

    def add_tags(self, tags: Sequence[str]) -> None:
        for tag in tags:
            self.add("EXISTS (SELECT 1 FROM tags t WHERE t.n = d.n AND t.tag = {})", tag)

    def add_domain(self, domain: str, below: str) -> None:
        self.add("(d.domain = {} OR substr(d.domain, 1, {}) = {})", domain, len(below), below)

    def add_metadata(self, key: str, value: object) -> None:
        """Texts and numbers are compared by SQLite, everything else by `record_matches`, which costs more."""
        whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
        plain = isinstance(value, (str, float)) or whole
        if not plain or '"' in key:
            matched = "EXISTS (SELECT 1 FROM records r WHERE r.n = d.n AND record_matches(d.kind, r.record, {}))"
            self.add(matched, json.dumps({key: value}))
            return
        self.add(
            "EXISTS (SELECT 1 FROM (SELECT r.record, CASE d.kind WHEN 'event' THEN '$.metadata' ELSE '$.data' END || {} AS place "
            "FROM records r WHERE r.n = d.n) h, json_each(h.record, h.place) e "
            "WHERE e.value = {} AND e.type IN ('text', 'integer', 'real') AND json_type(h.record, h.place) <> 'object')",
            f'."{key}"',
            value,
        )
