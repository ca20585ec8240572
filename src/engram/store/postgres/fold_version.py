"""Brings a tenant's index up to date after a change to the folding (`engram.text.confusables`) or translation of text.

The content hash and the terms of a memory are taken from its folded text. Those that an older Engram wrote are found by the new ones only
after this; memories that the change does not affect stay as they are.
"""

from contextlib import suppress

from engram.model.errors import StoreBusy, StoreDenied, StoreReadOnly
from engram.model.memory import Memory
from engram.store.documents import memory_document
from engram.store.postgres.context import FOLDING_VERSION, TenantContext
from engram.store.postgres.sql import statement
from engram.store.postgres.write import DocumentRow, write_documents
from engram.store.records import decode_record
from engram.text.confusables import fold_text
from engram.text.translation import translation

__all__ = ["refold"]

REFOLDED_AT_ONCE = 500


def refold(context: TenantContext) -> None:
    """Write the documents of memories whose folded text differs, unless it was done.

    If this role may not write, or others hold the tables, a later opening does it.
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
