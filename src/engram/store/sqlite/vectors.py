"""The vectors of documents: created in slices, and kept as one memory-mapped matrix whose row n belongs to document n.

The matrix is a cache of the BLOBs in SQLite. Its file is created complete, filled from the BLOBs, or not at all: a process that
finds it missing recreates it, and never starts an empty one without the rows of others.
"""

import contextlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.disk import FILE_MODE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix32 = npt.NDArray[np.float32]


UNFINISHED_PREFIX = ".vectors-"
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

        with self._open_file() as descriptor:
            self._reserve(descriptor, count)
        rows = self._path.stat().st_size // (4 * self.dim)
        # As a plain array: every operation on the memmap subclass pays for being one.
        return np.asarray(np.memmap(self._path, dtype=np.float32, mode="r", shape=(rows, self.dim)))

    @contextlib.contextmanager
    def _open_file(self) -> Iterator[int]:
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

        descriptor, name = tempfile.mkstemp(prefix=UNFINISHED_PREFIX, dir=self._path.parent)
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
            with self._open_file() as descriptor:
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
