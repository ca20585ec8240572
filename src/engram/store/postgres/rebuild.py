"""Rebuilds the index from the records, a slice at a time; searches continue meanwhile."""

from collections.abc import Iterator

from engram.store.documents import Document, event_document, memory_document
from engram.store.ledger import decode_event
from engram.store.postgres.context import TenantContext
from engram.store.postgres.ledger import session_scope
from engram.store.postgres.sql import statement
from engram.store.postgres.vector_generations import fill
from engram.store.postgres.write import DocumentRow, write_documents
from engram.store.protocol import Progress
from engram.store.records import decode_record

SLICE = 500


def rebuild(parts: TenantContext, progress: Progress) -> None:
    """Write every document and its words again, drop documents without a record, add missing vectors, recount terms."""
    total = int(parts.database.run("record_count")[0][0])
    done = 0
    for name in ("memory_slice", "event_slice"):
        after = ""
        while True:
            with parts.database.transaction() as connection:
                # Locked: otherwise a record changed or purged between reading and writing would return in its old form.
                slice_ = f"{statement(name)} FOR UPDATE"
                rows = parts.database.within(connection, slice_, {"after": after, "limit": SLICE})
                if not rows:
                    break
                documents = [DocumentRow(document) for document in _documents(parts, name, rows)]
                write_documents(parts.database, connection, documents, parts.settings.generation, rewrite=True)
            after, done = rows[-1][0], done + len(rows)
            progress("documents", done, max(total, done))
    _drop_strays(parts)
    with parts.database.transaction() as connection:
        parts.database.all_of(connection, [("forget_statistics", {}), ("forget_terms", {})])
    fill(parts)


def _drop_strays(parts: TenantContext) -> None:
    """Drop documents whose record is gone."""
    while strays := parts.database.run("stray_documents", limit=SLICE):
        numbers = {"numbers": [n for (n,) in strays]}
        with parts.database.transaction() as connection:
            parts.database.all_of(
                connection, [(name, numbers) for name in ("drop_postings", "drop_vectors", "drop_documents")]
            )


def _documents(parts: TenantContext, name: str, rows: list[tuple[str, str]]) -> Iterator[Document]:
    for _, record in rows:
        if name == "memory_slice":
            yield memory_document(decode_record(record))
        else:
            event = decode_event(record)
            yield event_document(event, session_scope(parts, event.session))
