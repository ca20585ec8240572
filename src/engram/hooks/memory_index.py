"""Reads the store's index in a hook, without numpy: the memories of a scope, and those nearest to a prompt.

Memories that may be injected unasked are quoted as lines for the session.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from heapq import nsmallest
from pathlib import Path
from typing import Any

from engram.embedding.word_pieces import code_of_values
from engram.model.lazy import dataclass, replace
from engram.models.task_vectors import TaskTable, likeness
from engram.rules.labels import situation_with_cues
from engram.rules.numbers import FIELD_WEIGHTS
from engram.store.home import Home
from engram.store.sqlite.search import TASKS, document_frequencies
from engram.store.sqlite.stored_tasks import (
    MAX_COMPARED_MEMORIES,
    UNFINISHED_CHANGE,
    StoredTasks,
    TasksState,
    Vector,
    index_number,
)
from engram.store.sqlite.sweep import Sweep, changed_folders
from engram.text import display
from engram.text.tokens import prune_terms, query_terms
from engram.text.translation import translation

MAX_PROMPT_CHARS = 10_000
"""Characters of a prompt whose words are searched."""
READ_AT_A_PROMPT = 20
"""How many of the newest stale memories a prompt's hook embeds, at one to four milliseconds each.

The rest wait for the next prompts and the next session start.
"""
AT_ONCE, SLICE = 100, 1_000
"""From this many stale memories on, a session start embeds them with numpy, and saves after each slice."""


@dataclass(frozen=True, slots=True)
class IndexedMemory:
    """A memory as stored in the index."""

    n: int
    id: str
    record: dict[str, Any]

    @property
    def situation(self) -> str:
        """Its situation and cues; "" if it has neither."""
        return situation_with_cues(str(self.record.get("situation", "") or ""), self.record.get("cues") or ())

    @property
    def statement(self) -> str:
        """Its statement."""
        return str(self.record.get("statement", ""))


class MemoryIndex:
    """The index of a store, opened for reading."""

    def __init__(self, folder: Path) -> None:
        """Raises `sqlite3.Error` if there is none."""
        self._folder = folder
        self.table = TaskTable()
        self._read_tasks: StoredTasks | None = None
        self.db = sqlite3.connect(
            f"{(folder / 'index.db').as_uri()}?mode=ro", uri=True, timeout=1, isolation_level=None
        )

    def close(self) -> None:
        """Close it."""
        self.db.close()

    @property
    def has_tables(self) -> bool:
        """Whether the index has its tables; a process that has only begun to create it has none yet."""
        return self.db.execute("SELECT 1 FROM sqlite_master WHERE name = 'docs'").fetchone() is not None

    def has_edits(self, home: Home, seconds: float) -> bool:
        """Whether a memory file differs from this index, as far as can be checked in `seconds`."""
        root, folder = str(home.root), home.engrams.name
        return bool(changed_folders(self.db, root, [folder]) or Sweep(root, [folder]).compare(self.db, seconds))

    def _meta(self, key: str) -> Any:
        row = self.db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return row[0] if row else None

    def counts(self, scopes: Sequence[str]) -> dict[tuple[str, str], int]:
        """How many memories each scope has, by scope and status."""
        rows = self.db.execute(
            f"SELECT scope, status, count(*) FROM docs WHERE kind = 'memory' AND scope IN ({_placeholders(scopes)}) GROUP BY 1, 2",
            tuple(scopes),
        )
        return {(scope, status): count for scope, status, count in rows}

    def count_waiting(self) -> int:
        """How many memories wait for review, in all scopes."""
        row = self.db.execute("SELECT count(*) FROM docs WHERE kind = 'memory' AND status = 'candidate'").fetchone()
        return int(row[0])

    def active_numbers(self, scopes: Sequence[str]) -> list[int]:
        """The active memories of these scopes, by number."""
        rows = self.db.execute(
            f"SELECT n FROM docs WHERE kind = 'memory' AND scope IN ({_placeholders(scopes)}) AND status = 'active'",
            tuple(scopes),
        ).fetchall()
        return [n for (n,) in rows]

    def pinned_memories(self, scopes: Sequence[str], limit: int) -> list[IndexedMemory]:
        """The pinned memories of these scopes and the critical facts, newest first."""
        rows = self.db.execute(
            "SELECT n FROM docs WHERE (pinned OR critical <> '') AND kind = 'memory' AND status = 'active' "
            f"AND scope IN ({_placeholders(scopes)}) ORDER BY n DESC LIMIT ?",
            (*scopes, limit),
        ).fetchall()
        return self.memories([n for (n,) in rows])

    def memories(self, numbers: Sequence[int]) -> list[IndexedMemory]:
        """Memories by number, in this order."""
        return self._fetch_memories("d.n", numbers)

    def by_ids(self, ids: Sequence[str]) -> list[IndexedMemory]:
        """Memories by id, in this order, without those that are no longer active."""
        return self._fetch_memories("d.id", ids)

    def _fetch_memories(self, column: str, keys: Sequence[Any]) -> list[IndexedMemory]:
        rows = self.db.execute(
            f"SELECT d.n, d.id, r.record FROM json_each(?) j CROSS JOIN docs d ON {column} = j.value "
            "JOIN records r ON r.n = d.n WHERE d.status = 'active'",
            (json.dumps(list(keys)),),
        )
        found = {n: IndexedMemory(n, id_, json.loads(record)) for n, id_, record in rows}
        places = {key: place for place, key in enumerate(keys)}
        return sorted(found.values(), key=lambda one: places[one.n if column == "d.n" else one.id])

    # -- words

    def by_words(self, prompt: str, scopes: Sequence[str], limit: int) -> list[int]:
        """The active memories that share words with the prompt, best first."""
        total = int(self.db.execute("SELECT max(n) FROM docs").fetchone()[0] or 0)
        prompt = prompt[:MAX_PROMPT_CHARS]
        terms = prune_terms(document_frequencies(self.db, query_terms(f"{prompt} {translation(prompt)}"), total))
        if not terms:
            return []
        weights = ", ".join(str(weight) for weight in FIELD_WEIGHTS)
        rows = self.db.execute(
            f"SELECT d.n FROM words JOIN docs d ON d.n = words.rowid WHERE words MATCH ? AND d.kind = 'memory' "
            f"AND d.scope IN ({_placeholders(scopes)}) AND d.status = 'active' ORDER BY bm25(words, {weights}), d.n LIMIT ?",
            (" OR ".join(f'"{term}"' for term in terms), *scopes, limit),
        )
        return [n for (n,) in rows]

    # -- meaning

    @property
    def _generation(self) -> int:
        return int(self._meta("generation") or 1)

    def nearest(self, task: Sequence[float], numbers: Sequence[int], limit: int) -> "list[tuple[int, float]]":
        """The memories nearest to the vector of a task, with their similarity.

        Candidates are found by codes and compared exactly.
        """
        numbers = numbers if len(numbers) <= MAX_COMPARED_MEMORIES else sorted(numbers)[-MAX_COMPARED_MEMORIES:]
        tasks, code = self.tasks(), code_of_values(task)
        known = tasks.codes
        distances = [((code ^ known[n]).bit_count(), n) for n in numbers if n in known]
        return [(n, likeness(task, tasks.vector(n))) for _, n in nsmallest(limit, distances)]

    def has_vector(self, n: int) -> bool:
        """Whether the task vector of a memory is stored."""
        return n in self.tasks().codes

    def tasks(self, *, all_of_them: bool = False) -> StoredTasks:
        """The task vectors, updated for all memories or only as far as a prompt can wait."""
        if self._read_tasks is None:
            self._read_tasks = self._fresh_tasks(all_of_them=all_of_them)
        return self._read_tasks

    def _fresh_tasks(self, *, all_of_them: bool) -> StoredTasks:
        state, known = self._state(), StoredTasks.read(self._folder / TASKS)
        if known.state == state:
            return known
        if replace(known.state, change=0) != replace(state, change=0):
            known = StoredTasks.empty()
        rows = self.db.execute(
            "SELECT n, change FROM docs WHERE kind = 'memory' AND status = 'active' ORDER BY n DESC LIMIT ?",
            (MAX_COMPARED_MEMORIES,),
        ).fetchall()
        known = known.keep_only({n for n, _ in rows})
        seen = known.changes
        stale = {n: change for n, change in rows if seen.get(n) != change}
        return self._embed_stale(known, state, stale, all_of_them=all_of_them)

    def _embed_stale(
        self, known: StoredTasks, state: TasksState, stale: dict[int, int], *, all_of_them: bool
    ) -> StoredTasks:
        """Recompute the task vectors of stale memories, all or the newest.

        They are saved unless the index changed or another hook was faster.
        """
        path = self._folder / TASKS
        wanted = list(stale) if all_of_them else list(stale)[:READ_AT_A_PROMPT]
        for start in range(0, len(wanted) or 1, SLICE):
            part = self.memories(wanted[start : start + SLICE])
            vectors = vectors_of(part, self.table, at_once=all_of_them and len(part) >= AT_ONCE)
            is_last = start + SLICE >= len(stale) and len(wanted) == len(stale)
            known = known.merge(state if is_last else replace(state, change=UNFINISHED_CHANGE), vectors, stale)
            if self._state() == state != StoredTasks.state_of(path):
                known.write(path)
        return known

    def _state(self) -> TasksState:
        return TasksState(
            index_number(self._meta("name")), self._generation, int(self._meta("change") or 0), self.table.number
        )


def _placeholders(values: Sequence[object]) -> str:
    return ", ".join("?" * len(values))


def vectors_of(memories: Sequence[IndexedMemory], table: TaskTable, *, at_once: bool) -> dict[int, Vector]:
    """The stored vectors of memories. From about a hundred on, reading them all at once is faster."""
    parts = [(memory.situation, memory.statement) for memory in memories]
    found = table.encode_notes(parts) if at_once else [table.encode_note(*part) for part in parts]
    return {memory.n: vector for memory, vector in zip(memories, found, strict=True)}


MAX_LINE_STATEMENT_CHARS = 600
"""Maximum characters of a statement; `engram show` shows all of it."""
MAX_LINE_SITUATION_CHARS = 200


def is_injectable(memory: IndexedMemory) -> bool:
    """Whether a memory may be injected now, by the same rule as `inject`."""
    from engram.rules.lifecycle import eligibility
    from engram.store.records import from_image

    return eligibility(from_image(memory.record), datetime.now(UTC)).consider


def select_injectable(memories: Iterable[IndexedMemory], limit: int) -> list[IndexedMemory]:
    """The first few memories that may be injected."""
    found: list[IndexedMemory] = []
    for memory in memories:
        if len(found) == limit:
            break
        if is_injectable(memory):
            found.append(memory)
    return found


def render_memory(memory: IndexedMemory) -> str:
    """One memory, quoted."""
    record = memory.record
    said = display.quote_text(display.cut(str(record.get("statement", "")), MAX_LINE_STATEMENT_CHARS))
    situation = str(record.get("situation", "") or "")
    when = f" When: {display.quote_text(display.cut(situation, MAX_LINE_SITUATION_CHARS))}." if situation else ""
    return f"- [{display.safe_word(memory.id)}] {said}{when}"
