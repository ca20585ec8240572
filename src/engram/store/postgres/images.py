"""Past images of memories, from the journal."""

from datetime import datetime

from engram.model.memory import Memory
from engram.store.postgres.database import Database
from engram.store.protocol import Image
from engram.store.records import decode_record


def history(database: Database, memory_id: str) -> list[Image]:
    """Everything that was decided about a memory, oldest first."""
    return [
        Image(seq, at, op, actor, reason, decode_record(after) if after is not None else None, tuple(ids))
        for seq, at, op, actor, reason, after, ids in database.run("history", id=memory_id)
    ]


def known_at(database: Database, moment: datetime) -> dict[str, Memory | None]:
    """What Engram held at a moment of every memory it has decided about since; None where it knew nothing of it."""
    rows = database.run("known_at", moment=moment)
    return {memory_id: decode_record(after) if after is not None else None for memory_id, after in rows}
