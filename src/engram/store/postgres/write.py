"""Putting documents into the tables and taking them out. Everything here runs inside one transaction."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from engram.model.memory import Memory
from engram.store.documents import Document, meaning_digest
from engram.store.postgres.adapters import Texts, VectorArray
from engram.store.postgres.connections import Connection
from engram.store.postgres.database import Database
from engram.store.postgres.sql import statement
from engram.text.tokens import ASKED

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_TEXTS = (
    "id", "kind", "scope", "status", "type", "domain", "parent", "hash", "statement", "about", "support"
)  # fmt: skip
_VALUES = ("position", "time", "known", "valid_from", "valid_until", "pinned")
_TAG_END = "\x1f"
Item = TypeVar("Item")
Work = list[tuple[str, dict[str, Any]]]
SENT_AT_ONCE = 100
"""Documents of one statement: while the server writes some, the next are made."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document to be put, and its vector where the caller has it. `change` is the number of its scope's last change."""

    document: Document
    vector: "Vectors | None" = None
    change: int | None = None


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document as it stands in the table."""

    n: int
    texts: tuple[str, str, str]
    meaning: bytes
    scope: str
    kind: str
    change: int


@dataclass(frozen=True, slots=True)
class DocumentNumbers:
    """The numbers of documents about to be put, and those of them that are in the table."""

    numbers: Mapping[str, int]
    known: Mapping[str, KnownDocument]


def number_documents(database: Database, connection: Connection, ids: Sequence[str]) -> DocumentNumbers:
    """Where documents stand; one that is new is given a number."""
    known = known_documents(database, connection, ids)
    numbers = {i: held.n for i, held in known.items()}
    fresh = [i for i in ids if i not in known]
    if fresh:
        taken = database.within(connection, statement("next_numbers"), {"count": len(fresh)})
        numbers |= {i: n for i, (n,) in zip(fresh, taken, strict=True)}
    return DocumentNumbers(numbers, known)


def write_documents(
    database: Database,
    connection: Connection,
    rows: Sequence[DocumentRow],
    generation: int,
    *,
    anew: bool = False,
    placed: DocumentNumbers | None = None,
) -> None:
    """Insert or update documents; what did not change is left alone, unless its words are to be written `anew`.

    `placed` tells where they stand, if that is known already.
    """
    placed = placed or number_documents(database, connection, [row.document.id for row in rows])
    with connection.pipeline():
        for some in chunks(rows):
            database.send(connection, documents_work(some, placed, generation, anew=anew))


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Items in parts as large as are sent together."""
    return (items[start : start + SENT_AT_ONCE] for start in range(0, len(items), SENT_AT_ONCE))


def documents_work(
    rows: Sequence[DocumentRow], placed: DocumentNumbers, generation: int, *, anew: bool = False
) -> Work:
    """The statements that put these documents."""
    numbers, known = placed.numbers, placed.known
    reworded, spelled = [], []
    for row in rows:
        held, n = known.get(row.document.id), numbers[row.document.id]
        if held is None:
            spelled.append(n)
        elif anew or held.texts != _texts(row.document):
            reworded.append(n)
    work: Work = [("drop_postings", {"numbers": reworded})] if reworded else []
    work.append(("put_documents", _document_columns(rows, numbers, known)))
    if spelled or reworded:
        work.append(("put_postings", {"numbers": spelled + reworded}))
    _put_vectors(work, rows, numbers, known, generation)
    return work


def known_documents(database: Database, connection: Connection, ids: Sequence[str]) -> dict[str, KnownDocument]:
    """Those of the documents that are in the table."""
    rows = database.within(connection, statement("known_documents"), {"ids": list(ids)})
    return {
        i: KnownDocument(n, (statement_, about, support), bytes(meaning), scope, kind, change)
        for i, n, statement_, about, support, meaning, scope, kind, change in rows
    }


def _texts(document: Document) -> tuple[str, str, str]:
    return document.statement, document.about, document.support


def _length(document: Document) -> int:
    terms = " ".join(_texts(document)).split()
    return len(terms) - terms.count(ASKED)


def _document_columns(
    rows: Sequence[DocumentRow], numbers: Mapping[str, int], known: Mapping[str, KnownDocument]
) -> dict[str, Any]:
    documents = [row.document for row in rows]
    found: dict[str, Any] = {name: Texts(getattr(d, name) for d in documents) for name in _TEXTS}
    found |= {name: [getattr(d, name) for d in documents] for name in _VALUES}
    found["n"] = [numbers[d.id] for d in documents]
    found["tags"] = Texts(_TAG_END.join(dict.fromkeys(d.tags)) for d in documents)
    found["length"] = [_length(d) for d in documents]
    found["meaning"] = [meaning_digest(d.meaning) for d in documents]
    found["change"] = [
        row.change if row.change is not None else known[row.document.id].change if row.document.id in known else 0
        for row in rows
    ]
    return found


def _put_vectors(
    work: Work,
    rows: Sequence[DocumentRow],
    numbers: Mapping[str, int],
    known: Mapping[str, KnownDocument],
    generation: int,
) -> None:
    stale, moved, embedded = [], [], []
    for row in rows:
        held = known.get(row.document.id)
        if held is not None and held.meaning != meaning_digest(row.document.meaning):
            # Of every generation, one that is still being made included.
            stale.append(held.n)
        elif held is not None and held.scope != row.document.scope:
            moved.append(held.n)
        if row.vector is not None:
            embedded.append((numbers[row.document.id], row.document.kind, row.document.scope, row.vector))
    if stale:
        work.append(("drop_vectors", {"numbers": stale}))
    if moved:
        work.append(("move_vectors", {"numbers": moved}))
    if embedded:
        work.append(("put_vectors", vector_columns(embedded, generation)))


def columns(names: Sequence[str], rows: Iterable[tuple[Any, ...]]) -> dict[str, Any]:
    """Rows as the arrays that a statement unnests."""
    return dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))


def vector_columns(embedded: "Iterable[tuple[int, str, str, Vectors]]", generation: int) -> dict[str, Any]:
    """Numbers, kinds, scopes and vectors as `put_vectors` takes them."""
    numbers, kinds, scopes, vectors = zip(*embedded, strict=True)
    return {
        "generation": generation,
        "numbers": list(numbers),
        "kinds": Texts(kinds),
        "scopes": Texts(scopes),
        "vectors": VectorArray(vectors),
    }


def memories_work(memories: Sequence[tuple[Memory, str]], fresh: set[str]) -> Work:
    """The statements that put records of memories, their names and their links; those in `fresh` are new."""
    new = [(memory.id, record) for memory, record in memories if memory.id in fresh]
    old = [(memory.id, record) for memory, record in memories if memory.id not in fresh]
    # An id that is new is never one that is there: should a number be given out twice, the second decision fails.
    work: Work = [("add_memories", _records(new))] if new else []
    if old:
        ids = {"ids": Texts(i for i, _ in old)}
        work += [("put_memories", _records(old)), ("drop_names", ids), ("drop_relations", ids)]
    names = [(name, m.id, m.scope) for m, _ in memories for name in dict.fromkeys((m.name, *m.aliases)) if name]
    if names:
        work.append(
            ("put_names", dict(zip(("names", "ids", "scopes"), map(Texts, zip(*names, strict=True)), strict=True)))
        )
    links = [
        (m.id, link.target, link.type, link.strength, link.weight, link.last_reinforced)
        for m, _ in memories
        for link in m.associations
    ]
    if links:
        relation_columns = ("sources", "targets", "types", "strengths", "weights", "reinforced")
        work.append(("put_relations", columns(relation_columns, links)))
    return work


def _records(memories: Sequence[tuple[str, str]]) -> dict[str, Any]:
    return {"ids": Texts(i for i, _ in memories), "records": Texts(record for _, record in memories)}


def to_json(mapping: Mapping[str, Any]) -> str:
    """A record as the tables keep it."""
    return json.dumps(mapping, ensure_ascii=False, separators=(",", ":"))
