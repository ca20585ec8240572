"""Finds the memories nearest to a task, for the engine.

Their task vectors form one matrix, updated when the index changes.
"""

import json
import sqlite3
from collections.abc import Container
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engram.embedding.word_pieces import BITS, code_of_bytes
from engram.model.lazy import replace
from engram.models.task_vectors import TaskTable
from engram.rules.labels import situation_with_cues
from engram.store.sqlite.search import TASKS, Ranking, best_rows
from engram.store.sqlite.stored_tasks import MAX_COMPARED_MEMORIES, UNFINISHED_CHANGE, StoredTasks, TasksState

if TYPE_CHECKING:
    import numpy.typing as npt

    from engram.embedding.vectors import Vectors

__all__ = ["TaskNeighbours"]

EMBEDDED_PER_SEARCH = 1_000
"""How many of the newest memories without a vector one search embeds, in about 0.25 s; the next searches embed the rest."""
MIN_SAVED_MEMORIES = 20
"""From this many new vectors on, the file is rewritten, so that the next process need not compute them."""


class TaskNeighbours:
    """The task vectors of one process's index."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TASKS
        self._table = TaskTable()
        self._forget()

    def _forget(self) -> None:
        import numpy as np

        self._state: TasksState | None = None
        self._changes: dict[int, int] = {}
        self._rows: dict[int, int] = {}
        self._vectors: npt.NDArray[np.int8] = np.zeros((0, BITS), dtype=np.int8)
        self._units: Vectors | None = None
        self._unsaved = 0

    def __len__(self) -> int:
        return len(self._rows)

    @property
    def model(self) -> int:
        """The model of the task vectors."""
        return self._table.number

    @property
    def is_whole(self) -> bool:
        """Whether every memory had a vector at the last search."""
        return self._state is not None and self._state.change != UNFINISHED_CHANGE

    def nearest(self, db: sqlite3.Connection, state: TasksState, task: Any, count: int) -> Ranking:
        """The memories nearest to the vector of a task, nearest first. `state` is the current state of the index."""
        import numpy as np

        from engram.embedding import vectors as products
        from engram.embedding.vectors import unit_rows

        self._refresh(db, state)
        if not self._rows:
            return []
        if self._units is None:
            self._units = unit_rows(self._vectors.astype(np.float32))
            self._numbers = np.fromiter(self._rows, dtype=np.int64, count=len(self._rows))
        scores = products.scores(self._units, np.asarray(task, dtype=np.float32))
        best = best_rows(scores, count)
        return list(zip(self._numbers[best].tolist(), scores[best].tolist(), strict=True))

    def _refresh(self, db: sqlite3.Connection, state: TasksState) -> None:
        if self._state == state:
            return
        if self._state is None or replace(self._state, change=state.change) != state:
            self._read(state)
        since = self._state.change if self._state is not None else UNFINISHED_CHANGE
        is_whole = self._embed_changed(db, since)
        if is_whole and len(self._rows) != min(_count_active(db), MAX_COMPARED_MEMORIES):
            self._keep({n for n, _ in _active(db, UNFINISHED_CHANGE)})
        self._state = replace(state, change=state.change if is_whole else UNFINISHED_CHANGE)
        if self._unsaved >= MIN_SAVED_MEMORIES:
            self._save()

    def _embed_changed(self, db: sqlite3.Connection, since: int) -> bool:
        """Embed changed memories; returns whether none are left."""
        stale = {n: change for n, change in _active(db, since) if self._changes.get(n) != change}
        self._embed(db, list(stale)[:EMBEDDED_PER_SEARCH], stale)
        return len(stale) <= EMBEDDED_PER_SEARCH

    def _keep(self, there: Container[int]) -> None:
        """Remove the vectors of memories that no longer exist, so that a purge leaves nothing behind."""
        kept = {n: row for n, row in self._rows.items() if n in there}
        if len(kept) < len(self._rows):
            self._vectors, self._units = self._vectors[list(kept.values())], None
            self._rows = {n: row for row, n in enumerate(kept)}
            self._changes = {n: self._changes[n] for n in kept}

    def _read(self, state: TasksState) -> None:
        """Start with the vectors in the file, if they belong to this index."""
        import numpy as np

        self._forget()
        stored = StoredTasks.read(self._path)
        if replace(stored.state, change=state.change) == state:
            self._state, self._changes = stored.state, stored.changes
            self._rows = {n: row for row, n in enumerate(self._changes)}
            self._vectors = np.frombuffer(stored.vectors, dtype=np.int8).reshape(-1, BITS)

    def _embed(self, db: sqlite3.Connection, wanted: list[int], changes: dict[int, int]) -> None:
        import numpy as np

        records = db.execute(
            "SELECT r.n, r.record FROM json_each(?) j JOIN records r ON r.n = j.value", (json.dumps(wanted),)
        ).fetchall()
        if not records:
            return
        read = [(n, json.loads(record)) for n, record in records]
        vectors = self._table.encode_notes([_texts(one) for _, one in read])
        added = np.frombuffer(b"".join(vectors), dtype=np.int8).reshape(-1, BITS)
        kept = {n: row for n, row in self._rows.items() if n not in changes}
        self._vectors = np.concatenate([self._vectors[list(kept.values())], added])
        self._rows, self._units = {n: row for row, n in enumerate([*kept, *(n for n, _ in read)])}, None
        self._changes = {n: changes.get(n, self._changes.get(n, 0)) for n in self._rows}
        self._unsaved += len(read)

    def _save(self) -> None:
        assert self._state is not None
        data = self._vectors.tobytes()
        codes = [code_of_bytes(data[start : start + BITS]) for start in range(0, len(data), BITS)]
        numbers = list(self._rows)
        StoredTasks(self._state, numbers, [self._changes[n] for n in numbers], codes, memoryview(data)).write(
            self._path
        )
        self._unsaved = 0


def _texts(record: dict[str, Any]) -> tuple[str, str]:
    """The two texts of a record that its vector is computed from."""
    return situation_with_cues(record.get("situation") or "", record.get("cues") or ()), record.get("statement") or ""


def _active(db: sqlite3.Connection, since: int) -> list[tuple[int, int]]:
    """The active memories that changed since then, each with its change, newest first."""
    return db.execute(
        "SELECT n, change FROM docs WHERE kind = 'memory' AND status = 'active' AND change > ? ORDER BY n DESC LIMIT ?",
        (since, MAX_COMPARED_MEMORIES),
    ).fetchall()


def _count_active(db: sqlite3.Connection) -> int:
    return int(db.execute("SELECT count(*) FROM docs WHERE kind = 'memory' AND status = 'active'").fetchone()[0])
