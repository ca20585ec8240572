"""Vectors for what was indexed without one: hand edits, replays."""

from engram.store.documents import stored_meaning
from engram.store.files.parts import Parts

BATCH = 256


def fill_vectors(parts: Parts, deadline: float) -> None:
    """Embed what lacks a vector, a few at a time; the lock is taken only to write. Raises `EmbedderError` half-way."""
    if parts.embedder is None or not parts.index.get("lacking") or not parts.index.can_embed():
        return
    after = 0
    while rows := parts.index.without_vector(after, BATCH):
        vectors = parts.embedder.embed([stored_meaning(kind, record) for _, kind, record in rows])
        with parts.lock.held(deadline), parts.index.writing() as writer:
            # While this was being embedded another writer may have changed, embedded or purged it.
            still = parts.index.without_vector(after, BATCH)
            for row, vector in zip(rows, vectors, strict=True):
                if row in still:
                    writer.put_vector(row[0], vector)
        after = rows[-1][0]
    with parts.lock.held(deadline), parts.index.writing():
        if not parts.index.without_vector(0, 1):
            parts.index.set("lacking", 0)
