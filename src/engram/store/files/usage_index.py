"""The usage log as the index knows it: followed by position, asked by memory, session or kind."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from engram.model.usage import Use
from engram.store.files.context import StoreContext

_COLUMNS = "u.kind, u.id, u.at, u.session, u.signal, u.position"


def follow(parts: StoreContext) -> None:
    """Take in what was noted since the last look. SQLite's own lock is enough, and a read-only home has no other."""
    end, known = parts.usage.end(), int(parts.index.get("usage") or 0)
    if end <= known:
        return
    with parts.index.writing():
        for use in parts.usage.read(int(parts.index.get("usage") or 0)):
            for memory_id in use.ids:
                parts.index.db.execute(
                    "INSERT OR IGNORE INTO uses (position, id, kind, signal, session, at) SELECT ?, ?, ?, ?, ?, ? "
                    "WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE id = ?)",
                    (use.position, memory_id, use.kind, use.signal, use.session, use.at.timestamp(), memory_id),
                )
        parts.index.set("usage", end)


def of(parts: StoreContext, memory_ids: Iterable[str]) -> list[Use]:
    """Every noted use of these memories, oldest first."""
    return _asked(parts, "FROM json_each(?) j CROSS JOIN uses u ON u.id = j.value", json.dumps(list(memory_ids)))


def in_session(parts: StoreContext, session: str) -> list[Use]:
    """Every use noted in a session."""
    return _asked(parts, "FROM uses u WHERE u.session = ?", session)


def since(parts: StoreContext, position: int) -> list[str]:
    """Ids of memories used after a position."""
    follow(parts)
    rows = parts.index.db.execute("SELECT DISTINCT id FROM uses WHERE position >= ?", (position,))
    return [row[0] for row in rows]


def last(parts: StoreContext, kind: str) -> Use | None:
    """The newest use of a kind, with all its ids."""
    found = _asked(parts, "FROM uses u WHERE u.position = (SELECT max(position) FROM uses WHERE kind = ?)", kind)
    return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None


def _asked(parts: StoreContext, clause: str, value: str) -> list[Use]:
    follow(parts)
    rows = parts.index.db.execute(f"SELECT {_COLUMNS} {clause} ORDER BY u.position", (value,))
    return [_use(row) for row in rows]


def _use(row: tuple[Any, ...]) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), datetime.fromtimestamp(at, UTC), session, signal, position)
