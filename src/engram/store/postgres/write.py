"""Writes documents and records of memories to the tables, inside one transaction."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.store.documents import Document, meaning_digest
from engram.store.postgres.adapters import Texts, VectorArray
from engram.store.postgres.database import Database
from engram.text.tokens import QUESTION_MARKER

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_TEXTS = (
    "id", "kind", "scope", "status", "type", "domain", "parent", "hash", "statement", "about", "support", "cues"
)  # fmt: skip
_VALUES = ("position", "time", "known", "valid_from", "valid_until", "pinned")
_TAG_END = "\x1f"
Item = TypeVar("Item")
Work = list[tuple[str, dict[str, Any]]]
ROWS_PER_CHUNK = 100
"""Documents per statement: the server writes some while the next are prepared."""


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A document to write, with its vector if the caller has it. `change` is the number of its scope's last change."""

    document: Document
    vector: "Vectors | None" = None
    change: int | None = None


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document as it is in the table."""

    n: int
    texts: tuple[str, ...]
    meaning: bytes
    scope: str
    kind: str
    change: int


@dataclass(frozen=True, slots=True)
class DocumentNumbers:
    """The numbers of documents to write, and those that are in the table already."""

    numbers: Mapping[str, int]
    known: Mapping[str, KnownDocument]


def number_documents(database: Database, ids: Sequence[str], minted: Collection[str] = ()) -> DocumentNumbers:
    """Look up the numbers of documents; new ones, and those of ids that were only just `minted`, get the next numbers."""
    older = [i for i in ids if i not in minted]
    known = known_documents(database, older) if older else {}
    numbers = {i: stored.n for i, stored in known.items()}
    fresh = [i for i in ids if i not in known]
    if fresh:
        taken = database.run("next_numbers", count=len(fresh))
        numbers |= {i: n for i, (n,) in zip(fresh, taken, strict=True)}
    return DocumentNumbers(numbers, known)


def write_documents(
    database: Database,
    rows: Sequence[DocumentRow],
    generation: int,
    *,
    rewrite: bool = False,
) -> None:
    """Insert or update documents. Unchanged words are left alone unless `rewrite` is set."""
    numbered = number_documents(database, [row.document.id for row in rows])
    with database.pipeline():
        for some in chunks(rows):
            database.send(documents_work(some, numbered, generation, rewrite=rewrite))


def chunks(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    """Items in chunks that are sent together."""
    return (items[start : start + ROWS_PER_CHUNK] for start in range(0, len(items), ROWS_PER_CHUNK))


def documents_work(
    rows: Sequence[DocumentRow], numbered: DocumentNumbers, generation: int, *, rewrite: bool = False
) -> Work:
    """The statements that write these documents."""
    numbers, known = numbered.numbers, numbered.known
    changed, added = [], []
    for row in rows:
        stored, n = known.get(row.document.id), numbers[row.document.id]
        if stored is None:
            added.append(n)
        elif rewrite or stored.texts != _texts(row.document):
            changed.append(n)
    work: Work = [("drop_postings", {"numbers": changed})] if changed else []
    work.append(("put_documents", _document_columns(rows, numbers, known)))
    if added or changed:
        work.append(("put_postings", {"numbers": added + changed}))
    _put_vectors(work, rows, numbers, known, generation)
    return work


def known_documents(database: Database, ids: Sequence[str]) -> dict[str, KnownDocument]:
    """The documents that are in the table, by id."""
    rows = database.run("known_documents", ids=list(ids))
    return {
        i: KnownDocument(n, (statement_, about, support, cues), bytes(meaning), scope, kind, change)
        for i, n, statement_, about, support, cues, meaning, scope, kind, change in rows
    }


def _texts(document: Document) -> tuple[str, ...]:
    return document.statement, document.about, document.support, document.cues


def _length(document: Document) -> int:
    terms = " ".join(_texts(document)).split()
    return len(terms) - terms.count(QUESTION_MARKER)


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
        stored = known.get(row.document.id)
        if stored is not None and stored.meaning != meaning_digest(row.document.meaning):
            # Of every generation, including one that is still being built.
            stale.append(stored.n)
        elif stored is not None and stored.scope != row.document.scope:
            moved.append(stored.n)
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
    """The columns that `put_vectors` expects."""
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
    # A new id must not exist yet: if a number was allocated twice, the second decision fails.
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
    """A record as the tables store it."""
    return json.dumps(mapping, ensure_ascii=False, separators=(",", ":"))
