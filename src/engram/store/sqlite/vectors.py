"""The vectors of documents: created in slices, and kept as one memory-mapped matrix whose row n belongs to document n.

The matrix is a cache of the BLOBs in SQLite. Its file is created complete, filled from the BLOBs, or not at all: a process that
finds it missing recreates it, and never starts an empty one without the rows of others.
"""

import contextlib
import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import FILE_MODE
from engram.model.errors import EmbedderError
from engram.store.documents import stored_meaning
from engram.store.protocol import Progress
from engram.store.sqlite.writer import to_blob

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from engram.store.files.reconcile.context import StoreContext

    Matrix32 = npt.NDArray[np.float32]


UNFINISHED = ".vectors-"
_GROWTH_ROWS = 4096


class Matrix:
    """Rows for an exact scan; written under the writer lock before the index commits.

    Reading and writing raise `FileNotFoundError` if the file is missing.
    """

    def __init__(self, path: Path, dim: int) -> None:
        self._path = path
        self.dim = dim
        self._view: Matrix32 | None = None
        self._inode = 0

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self._path.exists()

    def rows(self, count: int) -> "Matrix32":
        """The first `count` rows, without a copy."""
        inode = self._path.stat().st_ino
        if self._view is None or len(self._view) < count or self._inode != inode:
            self._view, self._inode = self._map(count), inode
        return self._view[:count]

    def _map(self, count: int) -> "Matrix32":
        import numpy as np

        with self._opened() as descriptor:
            self._reserve(descriptor, count)
        rows = self._path.stat().st_size // (4 * self.dim)
        # As a plain array: every operation on the memmap subclass pays for being one.
        return np.asarray(np.memmap(self._path, dtype=np.float32, mode="r", shape=(rows, self.dim)))

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _reserve(self, descriptor: int, count: int) -> None:
        size = 4 * self.dim * count
        if os.fstat(descriptor).st_size < size:
            os.ftruncate(descriptor, size + 4 * self.dim * max(_GROWTH_ROWS, count // 4))

    def fill(self, batches: "Iterable[tuple[Sequence[int], Matrix32]]", count: int) -> None:
        """Create the file from these rows; if another process was faster, its file is kept."""
        import tempfile  # slow to import

        descriptor, name = tempfile.mkstemp(prefix=UNFINISHED, dir=self._path.parent)
        try:
            os.fchmod(descriptor, FILE_MODE)
            self._reserve(descriptor, count)
            for numbers, vectors in batches:
                self._put(descriptor, numbers, vectors)
            with contextlib.suppress(FileExistsError):
                os.link(name, self._path)
        finally:
            os.close(descriptor)
            Path(name).unlink(missing_ok=True)

    def write(self, numbers: Sequence[int], vectors: "Matrix32") -> None:
        """Put rows in place."""
        if len(numbers):
            with self._opened() as descriptor:
                self._put(descriptor, numbers, vectors)

    def _put(self, descriptor: int, numbers: Sequence[int], vectors: "Matrix32") -> None:
        """Runs of consecutive numbers, the usual case, are one write each."""
        self._reserve(descriptor, max(numbers) + 1)
        for start, end in _runs(numbers):
            os.pwrite(descriptor, vectors[start:end].tobytes(), numbers[start] * 4 * self.dim)

    def clear(self, numbers: Iterable[int]) -> None:
        """Zero some rows."""
        import numpy as np

        wanted = sorted(numbers)
        self.write(wanted, np.zeros((len(wanted), self.dim), dtype=np.float32))

    def remove(self) -> None:
        """Delete the file; it is recreated from the BLOBs."""
        self._view = None
        self._path.unlink(missing_ok=True)


def _runs(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield start, i
            start = i


def boot_id() -> str:
    """The id of the machine's current boot: after a power loss the matrix may lack pages that SQLite has. "" if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


SLICE = 256


def reembed(context: "StoreContext", deadline: float, progress: Progress) -> int:
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
            with context.lock.held(deadline):
                if _switch(context, generation):
                    return done
            continue
        vectors = context.embedder.embed([meaning for _, meaning in rows])
        with context.lock.held(deadline), index.writing():
            for (n, _), vector in zip(rows, vectors, strict=True):
                index.db.execute(index.statement("put_vector"), (generation, n, to_blob(vector)))
        done += len(rows)
        progress("vectors", done, max(total, done))


def _pending_generation(context: "StoreContext", name: str, deadline: float) -> int:
    index = context.index
    with context.lock.held(deadline), index.writing():
        stored = json.loads(index.get("pending") or "null")
        if stored and stored[1] == name and stored[0] > index.generation:
            return int(stored[0])
        generation = max(index.generation, stored[0] if stored else 0) + 1
        if index.get("embedder") == name:
            return index.generation
        index.db.execute("DELETE FROM vectors WHERE generation > ?", (index.generation,))
        index.set("pending", json.dumps([generation, name]))
        return generation


def _missing(context: "StoreContext", generation: int) -> list[tuple[int, str]]:
    rows = context.index.db.execute(context.index.statement("without_vector"), (generation, 0, SLICE)).fetchall()
    return [(n, stored_meaning(kind, record)) for n, kind, record in rows]


def _switch(context: "StoreContext", generation: int) -> bool:
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


def fill_vectors(context: "StoreContext", deadline: float) -> None:
    """Embed documents without a vector in slices; the lock is held only to write. Raises `EmbedderError`."""
    if context.embedder is None or not context.index.get("lacking") or not context.index.can_embed():
        return
    after = 0
    while rows := context.index.without_vector(after, SLICE):
        vectors = context.embedder.embed([stored_meaning(kind, record) for _, kind, record in rows])
        with context.lock.held(deadline), context.index.writing() as writer:
            # Another writer may have changed, embedded or purged them meanwhile.
            still = context.index.without_vector(rows[0][0] - 1, len(rows))
            for row, vector in zip(rows, vectors, strict=True):
                if row in still:
                    writer.put_vector(row[0], vector)
        after = rows[-1][0]
    with context.lock.held(deadline), context.index.writing():
        if not context.index.without_vector(0, 1):
            context.index.set("lacking", 0)
