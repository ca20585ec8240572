"""Whether a tenant's tables tell one story: records, documents, words, names, links, vectors, journal and ledgers."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg

from engram.model.memory import Memory
from engram.store.documents import memory_document
from engram.store.postgres.setup import open_store
from engram.store.records import decode_record
from tests.backends import static_embedder

ALIKE = 0.999
"""Vectors are kept in half precision."""
MOST = 32_767
"""How often a term is counted in a field."""
_TABLES = {
    "memories": "SELECT id, record::text FROM engram.agent_memory",
    "documents": "SELECT id, n, kind, scope, status, hash, pinned, statement, about, support, cues FROM engram.documents",
    "postings": "SELECT n, term, statement, about, support, cues FROM engram.postings",
    "names": "SELECT name, id, scope FROM engram.memory_names",
    "relations": "SELECT source, target, type FROM engram.memory_relations",
    "vectors": "SELECT generation, n, vector::text FROM engram.memory_vectors",
    "journal": "SELECT seq, ids FROM engram.journal",
    "images": "SELECT id, seq, after::text, op FROM engram.journal_images ORDER BY id, seq",
    "tombstones": "SELECT id FROM engram.tombstones",
    "events": "SELECT id FROM engram.agent_events",
    "facts": "SELECT key, value FROM engram.store_facts",
}
Rows = list[tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Tables:
    """Everything a tenant has, as of one moment."""

    rows: dict[str, Rows]
    memories: dict[str, Memory]

    def __getitem__(self, name: str) -> Rows:
        return self.rows[name]


def disagreements(url: str, tenant: str) -> list[str]:
    """What does not fit together; nothing where all is well."""
    store = open_store(url, tenant, static_embedder())
    ledgers = store.verify_ledgers()
    store.close()
    tables = _read(url, tenant)
    checks = (_documents, _words, _names, _links, _vectors, _journal, _order, _tombstones)
    return [*ledgers, *(complaint for check in checks for complaint in check(tables))]


def _read(url: str, tenant: str) -> Tables:
    with psycopg.connect(url) as connection:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        connection.execute("SELECT set_config('engram.tenant', %s, true)", (tenant,))
        rows = {name: connection.execute(query.encode()).fetchall() for name, query in _TABLES.items()}
    return Tables(rows, {memory_id: decode_record(record) for memory_id, record in rows["memories"]})


def _documents(tables: Tables) -> Iterator[str]:
    known = {row[0]: row for row in tables["documents"]}
    memories = {i for i, row in known.items() if row[2] == "memory"}
    yield from (f"{i} has no document" for i in tables.memories.keys() - memories)
    yield from (f"document {i} has no memory" for i in memories - tables.memories.keys())
    yield from (f"event {i} has no document" for (i,) in tables["events"] if i not in known)
    for memory_id in memories & tables.memories.keys():
        made = memory_document(tables.memories[memory_id])
        expected = (
            made.scope,
            made.status,
            made.hash,
            made.pinned,
            made.statement,
            made.about,
            made.support,
            made.cues,
        )
        if known[memory_id][3:] != expected:
            yield f"{memory_id}: its document says {known[memory_id][3:]} instead of {expected}"


def _words(tables: Tables) -> Iterator[str]:
    expected: dict[tuple[int, str], tuple[int, ...]] = {}
    for _, n, *_, said, about, support, cues in tables["documents"]:
        counts = [Counter(text.split()) for text in (said, about, support, cues)]
        terms = set().union(*counts) - {"?"}
        expected |= {(n, term): tuple(min(count[term], MOST) for count in counts) for term in terms}
    held = {(n, term): tuple(counts) for n, term, *counts in tables["postings"]}
    if held != expected:
        yield f"words: {sorted(held.items() ^ expected.items())[:4]}"


def _names(tables: Tables) -> Iterator[str]:
    memories = tables.memories.values()
    expected = {(name, m.id, m.scope) for m in memories for name in (m.name, *m.aliases) if name}
    if set(tables["names"]) != expected:
        yield f"names: {sorted(set(tables['names']) ^ expected)[:4]}"
    twice = [key for key, count in Counter((m.name, m.scope) for m in memories if m.name).items() if count > 1]
    yield from (f"the name {name} is twice in {scope}" for name, scope in twice)


def _links(tables: Tables) -> Iterator[str]:
    expected = {(m.id, link.target, link.type) for m in tables.memories.values() for link in m.associations}
    if set(tables["relations"]) != expected:
        yield f"links: {sorted(set(tables['relations']) ^ expected)[:4]}"


def _vectors(tables: Tables) -> Iterator[str]:
    facts: dict[str, str] = dict(tables["facts"])
    generation = json.loads(facts["generation"])
    held = {n: json.loads(vector) for g, n, vector in tables["vectors"] if g == generation}
    numbers = {row[0]: row[1] for row in tables["documents"]}
    if held.keys() != set(numbers.values()):
        yield f"vectors: {sorted(held.keys() ^ set(numbers.values()))[:4]}"
        return
    memories = [m for m in tables.memories.values() if m.id in numbers]
    if memories:
        made = static_embedder().embed([memory_document(m).meaning for m in memories])
        alike = np.sum(made * np.array([held[numbers[m.id]] for m in memories]), axis=1)
        yield from (f"{m.id} has another's vector" for m, cosine in zip(memories, alike, strict=True) if cosine < ALIKE)


def _journal(tables: Tables) -> Iterator[str]:
    """Every decision has an image of each memory it was about, and the last image is what the memory is."""
    told = {(seq, memory_id) for seq, ids in tables["journal"] for memory_id in ids}
    imaged = {(seq, memory_id) for memory_id, seq, *_ in tables["images"]}
    yield from (f"decision {seq} and the image of {i} are not both there" for seq, i in sorted(told ^ imaged)[:4])
    last = {memory_id: after and json.loads(after) for memory_id, _, after, _ in tables["images"]}
    records = {memory_id: json.loads(record) for memory_id, record in tables["memories"]}
    for memory_id in records.keys() | {i for i, after in last.items() if after is not None}:
        if last.get(memory_id) != records.get(memory_id):
            yield f"{memory_id}: the last image is {last.get(memory_id)}, the record {records.get(memory_id)}"


def _order(tables: Tables) -> Iterator[str]:
    """What only grows must grow along the journal's numbers, unless an undo takes a rating back."""
    before: dict[str, tuple[int, int, int]] = {}
    for memory_id, seq, after, op in tables["images"]:
        if after is None:
            continue
        memory = decode_record(after)
        now = (memory.feedback.positive, memory.activation.seq, memory.derivation_count)
        if op != "undo" and any(new < old for new, old in zip(now, before.get(memory_id, (0, 0, 0)), strict=True)):
            yield f"{memory_id}: decision {seq} went back from {before[memory_id]} to {now}"
        before[memory_id] = now


def _tombstones(tables: Tables) -> Iterator[str]:
    gone = {memory_id for (memory_id,) in tables["tombstones"]}
    yield from (f"{i} was purged and is there" for i in gone & {row[0] for row in tables["memories"]})
    yield from (f"{i} was purged and is in the journal" for i, _, after, _ in tables["images"] if i in gone and after)
