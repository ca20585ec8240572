"""Vectors of documents that have none yet, and of all documents with another embedder. The lock is held only to write."""

import json

from engram.model.errors import EmbedderError
from engram.store.documents import stored_meaning
from engram.store.files.reconcile.context import IndexContext
from engram.store.protocol import Progress
from engram.store.sqlite.writer import to_blob

DOCUMENTS_PER_BATCH = 256


def reembed(context: IndexContext, deadline: float, progress: Progress) -> int:
    """Embed every document with this process's embedder, continuing an interrupted run; returns how many were embedded.

    Searches use the old vectors until all new ones exist.
    """
    if context.embedder is None:
        raise EmbedderError("this process has no embedder; set one with `engram config embedder static`")
    index = context.index
    name = context.embedder.name
    if index.get("embedder") == name and not index.without_vector(0, 1):
        return 0
    generation = _pending_generation(context, name, deadline)
    done, total = 0, index.count - 1
    while True:
        rows = _missing(context, generation)
        if not rows:
            with context.lock.hold(deadline):
                if _switch(context, generation):
                    return done
            continue
        vectors = context.embedder.embed([meaning for _, meaning in rows])
        with context.lock.hold(deadline), index.writing():
            for (n, _), vector in zip(rows, vectors, strict=True):
                index.db.execute(index.statement("put_vector"), (generation, n, to_blob(vector)))
        done += len(rows)
        progress("vectors", done, max(total, done))


def _pending_generation(context: IndexContext, name: str, deadline: float) -> int:
    index = context.index
    with context.lock.hold(deadline), index.writing():
        stored = json.loads(index.get("pending") or "null")
        if stored and stored[1] == name and stored[0] > index.generation:
            return int(stored[0])
        generation = max(index.generation, stored[0] if stored else 0) + 1
        if index.get("embedder") == name:
            return index.generation
        index.db.execute("DELETE FROM vectors WHERE generation > ?", (index.generation,))
        index.set("pending", json.dumps([generation, name]))
        return generation


def _missing(context: IndexContext, generation: int) -> list[tuple[int, str]]:
    rows = context.index.db.execute(
        context.index.statement("without_vector"), (generation, 0, DOCUMENTS_PER_BATCH)
    ).fetchall()
    return [(n, stored_meaning(kind, record)) for n, kind, record in rows]


def _switch(context: IndexContext, generation: int) -> bool:
    """Make a generation current; returns False if a new document has no vector of it yet."""
    index = context.index
    with index.writing():
        if _missing(context, generation):
            return False
        old = index.generation
        index.claim_embedder(generation)
        index.db.execute("DELETE FROM vectors WHERE generation <> ?", (generation,))
        index.db.execute("DELETE FROM meta WHERE key = 'pending'")
    if old != generation:
        index.drop_stale_matrices()
    return True


def fill_vectors(context: IndexContext, deadline: float) -> None:
    """Embed documents without a vector in slices; the lock is held only to write. Raises `EmbedderError`."""
    if context.embedder is None or not context.index.get("lacking") or not context.index.can_embed():
        return
    after = 0
    while rows := context.index.without_vector(after, DOCUMENTS_PER_BATCH):
        vectors = context.embedder.embed([stored_meaning(kind, record) for _, kind, record in rows])
        with context.lock.hold(deadline), context.index.writing() as writer:
            # Another writer may have changed, embedded or purged them meanwhile.
            still = context.index.without_vector(rows[0][0] - 1, len(rows))
            for row, vector in zip(rows, vectors, strict=True):
                if row in still:
                    writer.put_vector(row[0], vector)
        after = rows[-1][0]
    with context.lock.hold(deadline), context.index.writing():
        if not context.index.without_vector(0, 1):
            context.index.set("lacking", 0)
