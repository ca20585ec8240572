"""Filters as a condition over `documents d`."""

import json
import re
from typing import Any

from engram.store.protocol import Filters

_OVER = ("retired", "rejected", "candidate")


class _Conditions:
    def __init__(self) -> None:
        self.parts = ["d.tenant = %(tenant)s"]
        self.values: dict[str, Any] = {}

    def add(self, condition: str, *values: Any) -> None:
        """A condition with `{}` where each value stands."""
        names = []
        for value in values:
            name = f"f{len(self.values)}"
            self.values[name] = value
            names.append(f"%({name})s")
        self.parts.append(condition.format(*names))

    def among(self, column: str, values: tuple[str, ...] | None) -> None:
        if values is None:
            return
        if len(values) == 1:  # an equality leaves an index its order, a list does not
            self.add(column + " = {}", values[0])
        else:
            self.add(column + " = ANY({}::text[])", list(values))


def where(filters: Filters) -> tuple[str, dict[str, Any]]:
    """The condition and its parameters."""
    found = _Conditions()
    found.among("d.kind", filters.kinds)
    found.among("d.scope", filters.scopes)
    found.among("d.type", filters.types)
    found.among("d.parent", filters.parents)
    if filters.roles is not None:
        # One look into the events' key for each document: as an EXISTS it may be joined with all of the tenant's events.
        found.add(
            "(SELECT e.record ->> 'role' FROM engram.agent_events e WHERE e.tenant = %(tenant)s AND e.id = d.id) "
            "= ANY({}::text[])",
            list(filters.roles),
        )
    if filters.pinned:
        found.parts.append("d.pinned")
    if filters.critical:
        found.parts.append(
            "d.id IN (SELECT c.id FROM engram.agent_memory c WHERE c.tenant = %(tenant)s AND c.critical_slot <> '')"
        )
    if filters.tags:
        found.add("d.tags @> {}::text[]", [tag.lower() for tag in filters.tags])
    if filters.domain is not None:
        found.add("(d.domain = {} OR starts_with(d.domain, {}))", filters.domain, filters.domain + "/")
    if filters.since is not None:
        found.add("d.time >= {}", filters.since)
    if filters.until is not None:
        found.add("d.time < {}", filters.until)
    if filters.known_at is not None:
        found.add("d.known <= {}", filters.known_at)
    _add_truth(filters, found)
    for key, value in filters.metadata.items():
        _add_metadata(key, value, found)
    return " AND ".join(found.parts), found.values


def _add_truth(filters: Filters, found: _Conditions) -> None:
    moment = filters.valid_at
    if filters.as_of and moment is not None:
        found.add("coalesce(d.valid_from, d.time, d.known, '-infinity') <= {}", moment)
        found.add("(d.valid_until IS NULL OR d.valid_until > {})", moment)
        found.add("d.status <> ALL({}::text[])", list(_OVER))
        return
    if moment is not None:
        found.add("(d.valid_from IS NULL OR d.valid_from <= {})", moment)
        found.add("(d.valid_until IS NULL OR d.valid_until > {})", moment)
    found.among("d.status", filters.statuses)


# A filter holds True and 1 for the same; inside a list or a mapping JSON's own equality decides.
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


def _add_metadata(key: str, value: object, found: _Conditions) -> None:
    """The caller's own data lies in the record; a list there matches as a whole, or by any of its items."""
    if _NUL.search(json.dumps([key, value])):
        found.parts.append("false")  # PostgreSQL stores no NUL
        return
    same, values = _comparison(value)
    found.add(f"EXISTS (SELECT 1 FROM {_ITEMS} WHERE {same})", key, *values)


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
