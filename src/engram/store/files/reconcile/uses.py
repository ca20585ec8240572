"""The uses of memories, in the index: the usage log is read on before each answer."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

from engram.model.lazy import replace
from engram.model.usage import Use
from engram.store.files.log.usage import Usage
from engram.store.sqlite.index import Index

_COLUMNS = "u.kind, u.id, u.at, u.session, u.signal, u.position"


def index_uses(index: Index, usage: Usage) -> None:
    """Index new uses. SQLite's own lock is enough, and a read-only home has no other."""
    end, known = usage.end(), int(index.get("usage") or 0)
    if end <= known:
        return
    with index.writing():
        for use in usage.read(int(index.get("usage") or 0)):
            for memory_id in use.ids:
                index.db.execute(
                    "INSERT OR IGNORE INTO uses (position, id, kind, signal, session, at) SELECT ?, ?, ?, ?, ?, ? "
                    "WHERE NOT EXISTS (SELECT 1 FROM tombstones WHERE id = ?)",
                    (use.position, memory_id, use.kind, use.signal, use.session, use.at.timestamp(), memory_id),
                )
        index.set("usage", end)


def uses_of(index: Index, usage: Usage, memory_ids: Iterable[str]) -> list[Use]:
    """Every use of these memories, oldest first."""
    return _select(
        index, usage, "FROM json_each(?) j CROSS JOIN uses u ON u.id = j.value", json.dumps(list(memory_ids))
    )


def uses_in(index: Index, usage: Usage, session: str) -> list[Use]:
    """Every use in a session."""
    return _select(index, usage, "FROM uses u WHERE u.session = ?", session)


def used_since(index: Index, usage: Usage, position: int) -> list[str]:
    """Ids of memories used after a position."""
    index_uses(index, usage)
    rows = index.db.execute("SELECT DISTINCT id FROM uses WHERE position >= ?", (position,))
    return [row[0] for row in rows]


def last_use(index: Index, usage: Usage, kind: str) -> Use | None:
    """The newest use of a kind, with all its ids."""
    found = _select(
        index, usage, "FROM uses u WHERE u.position = (SELECT max(position) FROM uses WHERE kind = ?)", kind
    )
    return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None


def _select(index: Index, usage: Usage, clause: str, value: str) -> list[Use]:
    index_uses(index, usage)
    rows = index.db.execute(f"SELECT {_COLUMNS} {clause} ORDER BY u.position", (value,))
    return [_use(row) for row in rows]


def _use(row: tuple[Any, ...]) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), datetime.fromtimestamp(at, UTC), session, signal, position)
