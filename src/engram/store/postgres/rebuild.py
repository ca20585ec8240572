"""Rebuilds the index from the records, after a change to text folding or with a new embedder; searches still work meanwhile."""

import time
from collections.abc import Iterator
from contextlib import suppress

from engram.model.errors import EmbedderError, StoreBusy, StoreDenied, StoreReadOnly
from engram.model.memory import Memory
from engram.store.documents import Document, event_document, meaning_digest, memory_document, stored_meaning
from engram.store.ledger import decode_event
from engram.store.postgres import neighbours
from engram.store.postgres.database import CACHE_SECONDS, FOLDING_VERSION, TenantContext
from engram.store.postgres.sql import statement
from engram.store.postgres.transaction import DocumentRow, vector_columns, write_documents
from engram.store.postgres.work import session_scope
from engram.store.protocol import Progress
from engram.store.records import decode_record
from engram.text.confusables import fold_text
from engram.text.translation import translation

EMBEDDED_AT_ONCE = 256


def fill(context: TenantContext) -> int:
    """Embed documents without a vector of the current generation, a slice at a time; returns how many."""
    if context.embedder is None or not context.settings.can_embed():
        return 0
    done, after = 0, 0
    while made := _embed_slice(context, context.settings.generation, after):
        after, done = made[0], done + made[1]
    return done


def _embed_slice(context: TenantContext, generation: int, after: int) -> tuple[int, int] | None:
    """Embed the next documents without a vector; returns the last number read and how many were written."""
    assert context.embedder is not None
    rows = context.database.run("without_vector", generation=generation, after=after, limit=EMBEDDED_AT_ONCE)
    if not rows:
        return None
    texts = {n: stored_meaning(kind, record) for n, kind, _, record, _ in rows}
    vectors = dict(zip(texts, context.embedder.embed(list(texts.values())), strict=True))
    with context.database.transaction():
        # Another writer may have changed or purged a document meanwhile.
        current = context.database.run("meanings", numbers=list(texts))
        kinds = {n: kind for n, kind, *_ in rows}
        unchanged = [
            (n, kinds[n], scope, vectors[n])
            for n, meaning, scope in current
            if bytes(meaning) == meaning_digest(texts[n])
        ]
        if unchanged:
            context.database.run("put_vectors", **vector_columns(unchanged, generation))
    return rows[-1][0], len(unchanged)


def reembed(context: TenantContext, progress: Progress) -> int:
    """Embed every document with this process's embedder. Resumable; searches use the old vectors meanwhile."""
    if context.embedder is None:
        raise EmbedderError("this process has no embedder; set one with `engram config embedder static`")
    context.settings.refresh()
    if context.settings.can_embed():
        if not context.settings.get("pending"):
            _drop_old(context, context.settings.generation)  # Left by a re-embedding that was interrupted at its end.
        return fill(context)
    generation = _pending_generation(context)
    total = int(context.database.run("document_count")[0][0])
    done = after = 0
    while True:
        made = _embed_slice(context, generation, after)
        if made is not None:
            after, done = made[0], done + made[1]
            progress("vectors", done, max(total, done))
        elif _switch(context, generation):
            time.sleep(CACHE_SECONDS)  # Other processes may use the old vectors until they read the settings again.
            _drop_old(context, generation)
            return done
        else:
            after = 0


def _pending_generation(context: TenantContext) -> int:
    assert context.embedder is not None
    with context.database.transaction():
        context.database.run("lock_facts")
        context.settings.refresh()
        pending = context.settings.get("pending")
        if pending and pending[1] == context.embedder.name:
            return int(pending[0])
        generation = max(context.settings.generation, pending[0] if pending else 0) + 1
        context.settings.set(pending=[generation, context.embedder.name])
    return generation


def _switch(context: TenantContext, generation: int) -> bool:
    """Make a generation current if no document lacks a vector of it. Returns whether it is."""
    assert context.embedder is not None
    with context.database.transaction():
        context.database.run("lock_facts")
        if context.database.run("lacks_vector", generation=generation):
            return False
        context.settings.set(
            generation=generation, embedder=context.embedder.name, dim=context.embedder.dim, pending=None, hnsw=None
        )
    context.settings.refresh()
    return True


def _drop_old(context: TenantContext, generation: int) -> None:
    neighbours.drop_others(context, generation)
    while context.database.run("drop_generation_slice", generation=generation):
        pass


REBUILT_AT_ONCE = 500


def rebuild(context: TenantContext, progress: Progress) -> None:
    """Write every document and its words again, drop documents without a record, add missing vectors, recount terms."""
    total = int(context.database.run("record_count")[0][0])
    done = 0
    for name in ("memory_slice", "event_slice"):
        after = ""
        while True:
            with context.database.transaction():
                # Locked: otherwise a record changed or purged between reading and writing would return in its old form.
                slice_ = f"{statement(name)} FOR UPDATE"
                rows = context.database.query(slice_, {"after": after, "limit": REBUILT_AT_ONCE})
                if not rows:
                    break
                documents = [DocumentRow(document) for document in _documents(context, name, rows)]
                write_documents(context.database, documents, context.settings.generation, rewrite=True)
            after, done = rows[-1][0], done + len(rows)
            progress("documents", done, max(total, done))
    _drop_strays(context)
    with context.database.transaction():
        context.database.run_all([("forget_statistics", {}), ("forget_terms", {})])
    fill(context)


def _drop_strays(context: TenantContext) -> None:
    """Drop documents whose record no longer exists."""
    while strays := context.database.run("stray_documents", limit=REBUILT_AT_ONCE):
        numbers = {"numbers": [n for (n,) in strays]}
        with context.database.transaction():
            context.database.run_all([(name, numbers) for name in ("drop_postings", "drop_vectors", "drop_documents")])


def _documents(context: TenantContext, name: str, rows: list[tuple[str, str]]) -> Iterator[Document]:
    for _, record in rows:
        if name == "memory_slice":
            yield memory_document(decode_record(record))
        else:
            event = decode_event(record)
            yield event_document(event, session_scope(context, event.session))


REFOLDED_AT_ONCE = 500


def refold(context: TenantContext) -> None:
    """Rewrite the documents of memories whose folded text differs, unless this is done.

    If this role may not write, or others have locked the tables, a later opening does it.

    The content hash and the terms of a memory are computed from its folded text. Those from an older Engram cannot be
    matched with new ones until this has run; memories that the change does not affect stay unchanged.
    """
    if context.settings.get("folding") == FOLDING_VERSION or not context.database.run(
        "memory_slice", after="", limit=1
    ):
        return
    with suppress(StoreReadOnly, StoreDenied, StoreBusy):
        after = ""
        while after := _refold_slice(context, after):
            pass
        with context.database.transaction():
            context.settings.set(folding=FOLDING_VERSION)


def _refold_slice(context: TenantContext, after: str) -> str:
    """Write the next documents; returns the id of the last memory that was read, "" at the end."""
    with context.database.transaction():
        # Locked: otherwise a record changed or purged between reading and writing would return in its old form.
        slice_ = f"{statement('foldable_slice')} FOR UPDATE"
        rows = context.database.query(slice_, {"after": after, "limit": REFOLDED_AT_ONCE})
        changed = [memory for _, record in rows if _is_folded_otherwise(memory := decode_record(record))]
        documents = [memory_document(memory) for memory in changed]
        vectors = context.embed([document.meaning for document in documents]) if documents else None
        write_documents(
            context.database,
            [
                DocumentRow(document, vectors[at] if vectors is not None else None)
                for at, document in enumerate(documents)
            ],
            context.settings.generation,
        )
    return rows[-1][0] if rows else ""


def _is_folded_otherwise(memory: Memory) -> bool:
    texts = (memory.statement, memory.situation, memory.rationale, *memory.tags, *memory.cues, *memory.entities)
    return any(fold_text(text) != text for text in texts) or bool(translation(memory.statement))
