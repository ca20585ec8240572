"""Creating vectors: of new documents, and of all when the embedder changes, in slices, switched at once."""

import json

from engram.model.errors import EmbedderError
from engram.store.documents import stored_meaning
from engram.store.files.context import StoreContext
from engram.store.files.index.writer import to_blob
from engram.store.protocol import Progress

SLICE = 256


def reembed(parts: StoreContext, deadline: float, progress: Progress) -> int:
    """Embed every document with this process's embedder, continuing an interrupted run; returns how many were embedded.

    Searches use the old vectors until all new ones exist.
    """
    if parts.embedder is None:
        raise EmbedderError("this process has no embedder; set one with `engram config embedder static`")
    index = parts.index
    name = parts.embedder.name
    if index.get("embedder") == name and not index.without_vector(0, 1):
        return 0
    generation = _pending_generation(parts, name, deadline)
    done, total = 0, index.count - 1
    while True:
        rows = _missing(parts, generation)
        if not rows:
            with parts.lock.held(deadline):
                if _switch(parts, generation):
                    return done
            continue
        vectors = parts.embedder.embed([meaning for _, meaning in rows])
        with parts.lock.held(deadline), index.writing():
            for (n, _), vector in zip(rows, vectors, strict=True):
                index.db.execute(index.statement("put_vector"), (generation, n, to_blob(vector)))
        done += len(rows)
        progress("vectors", done, max(total, done))


def _pending_generation(parts: StoreContext, name: str, deadline: float) -> int:
    index = parts.index
    with parts.lock.held(deadline), index.writing():
        stored = json.loads(index.get("pending") or "null")
        if stored and stored[1] == name and stored[0] > index.generation:
            return int(stored[0])
        generation = max(index.generation, stored[0] if stored else 0) + 1
        if index.get("embedder") == name:
            return index.generation
        index.db.execute("DELETE FROM vectors WHERE generation > ?", (index.generation,))
        index.set("pending", json.dumps([generation, name]))
        return generation


def _missing(parts: StoreContext, generation: int) -> list[tuple[int, str]]:
    rows = parts.index.db.execute(parts.index.statement("without_vector"), (generation, 0, SLICE)).fetchall()
    return [(n, stored_meaning(kind, record)) for n, kind, record in rows]


def _switch(parts: StoreContext, generation: int) -> bool:
    """Make a generation current; returns False if a new document has no vector of it yet."""
    index = parts.index
    with index.writing():
        if _missing(parts, generation):
            return False
        old = index.generation
        index.claim_embedder(generation)
        index.db.execute("DELETE FROM vectors WHERE generation <> ?", (generation,))
        index.db.execute("DELETE FROM meta WHERE key = 'pending'")
    if old != generation:
        index.drop_stale_matrices()
    return True


def fill_vectors(parts: StoreContext, deadline: float) -> None:
    """Embed documents without a vector in slices; the lock is held only to write. Raises `EmbedderError`."""
    if parts.embedder is None or not parts.index.get("lacking") or not parts.index.can_embed():
        return
    after = 0
    while rows := parts.index.without_vector(after, SLICE):
        vectors = parts.embedder.embed([stored_meaning(kind, record) for _, kind, record in rows])
        with parts.lock.held(deadline), parts.index.writing() as writer:
            # Another writer may have changed, embedded or purged them meanwhile.
            still = parts.index.without_vector(after, SLICE)
            for row, vector in zip(rows, vectors, strict=True):
                if row in still:
                    writer.put_vector(row[0], vector)
        after = rows[-1][0]
    with parts.lock.held(deadline), parts.index.writing():
        if not parts.index.without_vector(0, 1):
            parts.index.set("lacking", 0)
