"""Filters as a condition over `documents d`."""

import json
import re
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from engram.store.protocol import Filters
from engram.store.sql import FilterCondition


def where(filters: Filters) -> tuple[str, dict[str, Any]]:
    """The condition and its parameters."""
    found = PostgresCondition(filters)
    return f"d.tenant = %(tenant)s AND {found.text}" if found.parts else "d.tenant = %(tenant)s", found.values


# To a filter True and 1 are the same; inside a list or a mapping JSON's own equality decides.
_SAME_TEXT = "CASE json_typeof(e) WHEN 'string' THEN e #>> '{{}}' = {} ELSE false END"
_SAME_NUMBER = "CASE json_typeof(e) WHEN 'number' THEN (e #>> '{{}}')::numeric END = {}::text::numeric"
_SAME_TRUTH = "CASE json_typeof(e) WHEN 'boolean' THEN (e #>> '{{}}')::boolean END = {}::text::boolean"
_SAME_JSON = "CASE WHEN json_typeof(e) IN ('array', 'object') THEN e::jsonb = {}::text::jsonb ELSE false END"
_NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")
_NOTHING = "json_typeof(e) = 'null'"
_ITEMS = (
    "(SELECT CASE d.kind WHEN 'event' THEN "
    "(SELECT r.record -> 'metadata' FROM engram.agent_events r WHERE r.tenant = %(tenant)s AND r.id = d.id) ELSE "
    "(SELECT r.record -> 'data' FROM engram.agent_memory r WHERE r.tenant = %(tenant)s AND r.id = d.id) END AS data) m, "
    "LATERAL (SELECT coalesce(m.data -> {}, 'null') AS held) h, LATERAL (SELECT h.held AS e UNION ALL "
    "SELECT json_array_elements(CASE WHEN json_typeof(h.held) = 'array' THEN h.held ELSE '[]' END)) i"
)


class PostgresCondition(FilterCondition):
    """A condition with a named parameter for each value."""

    EARLIEST = "'-infinity'"

    def __init__(self, filters: Filters) -> None:
        self.values: dict[str, Any] = {}
        super().__init__(filters)

    def add(self, condition: str, *values: Any) -> None:
        names = [f"f{len(self.values) + place}" for place in range(len(values))]
        self.values |= dict(zip(names, values, strict=True))
        self.parts.append(condition.format(*(f"%({name})s" for name in names)))

    def among(self, column: str, values: Sequence[str] | None) -> None:
        if values is None:
            return
        if len(values) == 1:  # an equality leaves an index its order, a list does not
            self.add(column + " = {}", values[0])
        else:
            self.add(column + " = ANY({}::text[])", list(values))

    def not_among(self, column: str, values: Sequence[str]) -> None:
        self.add(column + " <> ALL({}::text[])", list(values))

    def moment(self, at: datetime) -> datetime:
        return at

    def add_roles(self, roles: Sequence[str]) -> None:
        # One look into the events' key for each document: as an EXISTS it may be joined with all of the tenant's events.
        self.add(
            "(SELECT e.record ->> 'role' FROM engram.agent_events e WHERE e.tenant = %(tenant)s AND e.id = d.id) "
            "= ANY({}::text[])",
            list(roles),
        )

    def add_critical(self) -> None:
        self.add(
            "d.id IN (SELECT c.id FROM engram.agent_memory c WHERE c.tenant = %(tenant)s AND c.critical_slot <> '')"
        )

    def add_without_cues(self) -> None:
        # Next to the cues, the index has the English words of a statement in another language.
        self.add(
            "(d.cues = '' OR d.id IN (SELECT c.id FROM engram.agent_memory c WHERE c.tenant = %(tenant)s "
            "AND coalesce(c.record ->> 'cues', '[]') = '[]'))"
        )

    def add_tags(self, tags: Sequence[str]) -> None:
        self.add("d.tags @> {}::text[]", list(tags))

    def add_domain(self, domain: str, below: str) -> None:
        self.add("(d.domain = {} OR starts_with(d.domain, {}))", domain, below)

    def add_metadata(self, key: str, value: object) -> None:
        """A list matches as a whole, or by any of its items."""
        if _NUL.search(json.dumps([key, value])):
            self.add("false")  # PostgreSQL stores no NUL
            return
        same, values = _comparison(value)
        self.add(f"EXISTS (SELECT 1 FROM {_ITEMS} WHERE {same})", key, *values)


def _comparison(value: object) -> tuple[str, list[str]]:
    """How an item is compared with a value, and the value as the statement takes it."""
    if value is None:
        return _NOTHING, []
    if isinstance(value, str):
        return _SAME_TEXT, [value]
    if isinstance(value, bool):
        return _SAME_TRUTH, [json.dumps(value)]
    if isinstance(value, (int, float)):
        return _SAME_NUMBER, [repr(value)]
    return _SAME_JSON, [json.dumps(value)]
