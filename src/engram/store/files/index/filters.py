"""Filters as a WHERE clause over `docs d`."""

import json

from engram.store.protocol import Filters

Clause = tuple[str, list[object]]
_LARGEST = 2**63 - 1
_OVER = ("retired", "rejected", "candidate")


class _Conditions:
    def __init__(self) -> None:
        self.parts: list[str] = []
        self.values: list[object] = []

    def add(self, condition: str, *values: object) -> None:
        self.parts.append(condition)
        self.values.extend(values)

    def among(self, column: str, values: tuple[str, ...] | None) -> None:
        if values is not None:
            self.add(f"{column} IN ({', '.join('?' * len(values))})", *values)


def where(filters: Filters) -> Clause:
    """The condition and its parameters."""
    found = _Conditions()
    found.among("d.kind", filters.kinds)
    found.among("d.scope", filters.scopes)
    found.among("d.type", filters.types)
    found.among("d.parent", filters.parents)
    if filters.parents is not None:
        found.add("d.parent <> ''")  # said so that SQLite may use the index, which leaves these out
    found.among("d.role", filters.roles)
    if filters.pinned:
        found.add("d.pinned")
    if filters.critical:
        found.add("d.critical <> ''")
    for tag in filters.tags or ():
        found.add("EXISTS (SELECT 1 FROM tags t WHERE t.n = d.n AND t.tag = ?)", tag.lower())
    if filters.domain is not None:
        below = filters.domain + "/"
        found.add("(d.domain = ? OR substr(d.domain, 1, ?) = ?)", filters.domain, len(below), below)
    if filters.since is not None:
        found.add("d.time >= ?", filters.since.timestamp())
    if filters.until is not None:
        found.add("d.time < ?", filters.until.timestamp())
    if filters.known_at is not None:
        found.add("d.known <= ?", filters.known_at.timestamp())
    _add_truth(filters, found)
    for key, value in filters.metadata.items():
        _add_metadata(key, value, found)
    return " AND ".join(found.parts) or "TRUE", found.values


def _add_truth(filters: Filters, found: _Conditions) -> None:
    moment = filters.valid_at.timestamp() if filters.valid_at is not None else None
    if filters.as_of and moment is not None:
        found.add("coalesce(d.valid_from, d.time, d.known, 0) <= ?", moment)
        found.add("(d.valid_until IS NULL OR d.valid_until > ?)", moment)
        found.add(f"d.status NOT IN ({', '.join('?' * len(_OVER))})", *_OVER)
        return
    if moment is not None:
        found.add("(d.valid_from IS NULL OR d.valid_from <= ?)", moment)
        found.add("(d.valid_until IS NULL OR d.valid_until > ?)", moment)
    found.among("d.status", filters.statuses)


def _add_metadata(key: str, value: object, found: _Conditions) -> None:
    """The caller's own data lies in the record; a list there matches by any of its items.

    Texts and numbers are compared by SQLite, everything else by `record_matches`, the rule itself: it costs more.
    """
    whole = isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    plain = isinstance(value, (str, float)) or whole
    if not plain or '"' in key:
        matched = "EXISTS (SELECT 1 FROM records r WHERE r.n = d.n AND record_matches(d.kind, r.record, ?))"
        found.add(matched, json.dumps({key: value}))
        return
    found.add(
        "EXISTS (SELECT 1 FROM (SELECT r.record, CASE d.kind WHEN 'event' THEN '$.metadata' ELSE '$.data' END || ? AS place "
        "FROM records r WHERE r.n = d.n) h, json_each(h.record, h.place) e "
        "WHERE e.value = ? AND e.type IN ('text', 'integer', 'real') AND json_type(h.record, h.place) <> 'object')",
        f'."{key}"',
        value,
    )
