"""Past images of memories, read back from the journal where the index says they lie."""

from datetime import datetime

from engram.model.memory import Memory
from engram.store.files.journal import Entry, Position
from engram.store.files.parts import Parts
from engram.store.files.recovery import IndexOutdated
from engram.store.protocol import Image
from engram.store.records import from_image


def history(parts: Parts, memory_id: str) -> list[Image]:
    """Everything that was decided about a memory, oldest first."""
    rows = parts.index.db.execute("SELECT seq, month, offset FROM images WHERE id = ? ORDER BY seq", (memory_id,))
    return [_image(_entry(parts, memory_id, *row), memory_id) for row in rows.fetchall()]


def known_at(parts: Parts, moment: datetime) -> dict[str, Memory | None]:
    """What Engram held at a moment of every memory it has decided about since; None where it knew nothing of it."""
    rows = parts.index.db.execute(
        "SELECT l.id, i.seq, i.month, i.offset FROM (SELECT DISTINCT id FROM images WHERE at > ?1) l LEFT JOIN images i "
        "ON i.id = l.id AND i.seq = (SELECT max(o.seq) FROM images o WHERE o.id = l.id AND o.at <= ?1)",
        (moment.timestamp(),),
    )
    held: dict[str, Memory | None] = {}
    for memory_id, seq, *place in rows.fetchall():
        held[memory_id] = _image(_entry(parts, memory_id, seq, *place), memory_id).memory if seq is not None else None
    return held


def _entry(parts: Parts, memory_id: str, seq: int, month: str, offset: int) -> Entry:
    entry = parts.journal.at(Position(month, offset))
    if entry.seq != seq:
        raise IndexOutdated(f"{memory_id}: the journal was rewritten since it was indexed")
    return entry


def _image(entry: Entry, memory_id: str) -> Image:
    after = next((change.after for change in entry.changes if change.id == memory_id), None)
    memory = from_image(after) if after is not None else None
    ids = tuple(change.id for change in entry.changes)
    return Image(entry.seq, entry.at, entry.op, entry.actor, entry.reason, memory, ids)
