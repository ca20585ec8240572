"""Reading the store's index in a hook: the memories of a scope, and those nearest to a prompt, without numpy.

The marks of the memories (codes of their vectors, and their topics) are kept in a small file next to the index and brought up to date by the hook
that reads them; like the index it is derived, and deleting it costs one slower prompt.
"""

import json
import sqlite3
import struct
from array import array
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engram.disk import read_bytes, replace_file
from engram.embedding.plain import BITS, code_of
from engram.model.lazy import dataclass
from engram.models.topics import table
from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.files.index.search import MARKS, document_frequencies
from engram.text.tokens import prune, query_terms

EMBEDDER = "static-minilm-256-v2"
"""The embedder whose vectors can be compared without numpy."""
MOST_COMPARED = 20_000
"""Memories of a scope that are compared by their vectors, the newest; older ones are found by their words."""
LONGEST_PROMPT = 10_000
"""Characters of a prompt whose words are searched."""
_HEADER = struct.Struct("<8sqqq")
_MAGIC = b"engmark1"
_CODE, _TOPICS = BITS // 8, 40
_BYTES = _CODE + _TOPICS
TOPIC_BITS = 48
"""What the same topics count beside the differing bits of the vectors."""
Marks = tuple[int, int]
"""The code of a memory's vector, and a bit for each of its topics."""
NO_MARKS: Marks = (0, 0)


@dataclass(frozen=True, slots=True)
class IndexedMemory:
    """A memory as the index has it."""

    n: int
    id: str
    record: dict[str, Any]
    vector: bytes


class MemoryIndex:
    """The index of a store, opened for reading."""

    def __init__(self, folder: Path) -> None:
        """Raises `sqlite3.Error` where there is none."""
        self._folder = folder
        self.db = sqlite3.connect(
            f"{(folder / 'index.db').as_uri()}?mode=ro", uri=True, timeout=1, isolation_level=None
        )

    def close(self) -> None:
        """Close it."""
        self.db.close()

    @property
    def has_tables(self) -> bool:
        """Whether its tables are there; a process that has only begun to make it has none yet."""
        return self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'docs'").fetchone() is not None

    def _meta(self, key: str) -> Any:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def counts(self, scopes: Sequence[str]) -> dict[tuple[str, str], int]:
        """How many memories each scope has, by scope and status."""
        rows = self.db.execute(
            f"SELECT scope, status, count(*) FROM docs WHERE kind = 'memory' AND scope IN ({_marks(scopes)}) GROUP BY 1, 2",
            tuple(scopes),
        )
        return {(scope, status): count for scope, status, count in rows}

    def waiting(self) -> int:
        """How many memories of all scopes wait for review."""
        row = self.db.execute("SELECT count(*) FROM docs WHERE kind = 'memory' AND status = 'candidate'").fetchone()
        return int(row[0])

    def active(self, scopes: Sequence[str]) -> list[int]:
        """The active memories of these scopes, by number."""
        rows = self.db.execute(
            f"SELECT n FROM docs WHERE kind = 'memory' AND scope IN ({_marks(scopes)}) AND status = 'active'",
            tuple(scopes),
        ).fetchall()
        return [n for (n,) in rows]

    def pinned(self, scopes: Sequence[str], limit: int) -> list[IndexedMemory]:
        """The pinned memories of these scopes, and the facts that are critical, newest first."""
        rows = self.db.execute(
            "SELECT n FROM docs WHERE (pinned OR critical <> '') AND kind = 'memory' AND status = 'active' "
            f"AND scope IN ({_marks(scopes)}) ORDER BY n DESC LIMIT ?",
            (*scopes, limit),
        ).fetchall()
        return self.memories([n for (n,) in rows])

    def memories(self, numbers: Sequence[int]) -> list[IndexedMemory]:
        """Memories by number, in this order, with their vectors."""
        return self._fetched("d.n", numbers)

    def by_ids(self, ids: Sequence[str]) -> list[IndexedMemory]:
        """Memories by id, in this order; those that are not active any more are left out."""
        return self._fetched("d.id", ids)

    def _fetched(self, column: str, keys: Sequence[Any]) -> list[IndexedMemory]:
        rows = self.db.execute(
            f"SELECT d.n, d.id, r.record, v.vector FROM json_each(?) j CROSS JOIN docs d ON {column} = j.value "
            "JOIN records r ON r.n = d.n LEFT JOIN vectors v ON v.generation = ? AND v.n = d.n WHERE d.status = 'active'",
            (json.dumps(list(keys)), self._generation if self._comparable else -1),
        )
        found = {n: IndexedMemory(n, id_, json.loads(record), vector or b"") for n, id_, record, vector in rows}
        places = {key: place for place, key in enumerate(keys)}
        return sorted(found.values(), key=lambda one: places[one.n if column == "d.n" else one.id])

    # -- words

    def by_words(self, prompt: str, scopes: Sequence[str], limit: int) -> list[int]:
        """The active memories that share words with the prompt, best first."""
        total = int(self.db.execute("SELECT max(n) FROM docs").fetchone()[0] or 0)
        terms = prune(document_frequencies(self.db, query_terms(prompt[:LONGEST_PROMPT]), total))
        if not terms:
            return []
        weights = ", ".join(str(weight) for weight in FIELD_WEIGHTS)
        rows = self.db.execute(
            f"SELECT d.n FROM words JOIN docs d ON d.n = words.rowid WHERE words MATCH ? AND d.kind = 'memory' "
            f"AND d.scope IN ({_marks(scopes)}) AND d.status = 'active' ORDER BY bm25(words, {weights}), d.n LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), *scopes, limit),
        )
        return [n for (n,) in rows]

    # -- meaning

    @property
    def _generation(self) -> int:
        return int(self._meta("generation") or 1)

    @property
    def _comparable(self) -> bool:
        return bool(self._meta("embedder") == EMBEDDER)

    def nearest(self, code: int, topics: int, numbers: Sequence[int], limit: int) -> list[int]:
        """The memories nearest to a prompt, by the code of its vector and by its topics, nearest first."""
        numbers = numbers if len(numbers) <= MOST_COMPARED else sorted(numbers)[-MOST_COMPARED:]
        if not numbers:
            return []
        known, own = self._marks_of(numbers), topics.bit_count()
        scores = [
            (code ^ other).bit_count() - shared * TOPIC_BITS / (own * about.bit_count()) ** 0.5
            if (shared := (topics & about).bit_count())
            else (code ^ other).bit_count()
            for other, about in known
        ]
        return [numbers[place] for place in sorted(range(len(numbers)), key=scores.__getitem__)[:limit]]

    def refresh_marks(self) -> None:
        """Bring the file of marks up to date."""
        self._marks_of([])

    def _marks_of(self, numbers: Sequence[int]) -> list[Marks]:
        """The code and the topics of each memory."""
        path, generation, change = self._folder / MARKS, self._generation, int(self._meta("change") or 0)
        known, seen = _read_marks(path, generation)
        if seen != change:
            fresh = self._computed("SELECT n FROM docs WHERE change > ? AND kind = 'memory'", seen, generation)
            missing = [n for n in numbers if n not in known and n not in fresh]
            fresh |= self._computed("SELECT value AS n FROM json_each(?)", json.dumps(missing), generation)
            if fresh or seen < 0:
                known |= fresh
                _write_marks(path, generation, change, known)
        return [known.get(n, NO_MARKS) for n in numbers]

    def _computed(self, numbers: str, parameter: object, generation: int) -> dict[int, Marks]:
        """The marks of the memories that a query names, from their vectors and terms."""
        rows = self.db.execute(
            f"SELECT t.n, t.statement, t.about, v.vector FROM ({numbers}) c CROSS JOIN texts t ON t.n = c.n "
            "LEFT JOIN vectors v ON v.generation = ? AND v.n = t.n",
            (parameter, generation if self._comparable else -1),
        )
        mask = table().mask
        return {
            n: (code_of(vector) if vector and len(vector) == 2 * BITS else 0, mask(f"{about} {said}".split()))
            for n, said, about, vector in rows
        }


def _marks(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def _read_marks(path: Path, generation: int) -> tuple[dict[int, Marks], int]:
    """The known marks by number, and the last change they cover; -1 where the file is missing or another generation's."""
    try:
        data = read_bytes(path)
        magic, of_generation, change, count = _HEADER.unpack_from(data)
    except (OSError, struct.error):
        return {}, -1
    start = _HEADER.size + 8 * count
    if magic != _MAGIC or of_generation != generation or len(data) != start + _BYTES * count:
        return {}, -1
    numbers, read = array("q", data[_HEADER.size : start]), int.from_bytes
    places = range(start, len(data), _BYTES)
    marks = [(read(data[at : at + _CODE]), read(data[at + _CODE : at + _BYTES])) for at in places]
    return dict(zip(numbers, marks, strict=True)), change


def _write_marks(path: Path, generation: int, change: int, known: dict[int, Marks]) -> None:
    marks = b"".join([code.to_bytes(_CODE) + topics.to_bytes(_TOPICS) for code, topics in known.values()])
    data = _HEADER.pack(_MAGIC, generation, change, len(known)) + array("q", known).tobytes() + marks
    try:
        replace_file(path, data, durable=False)
    except OSError:
        return  # a read-only cache only costs time
