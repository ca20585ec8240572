"""All vectors of one generation as one memory-mapped matrix: row n belongs to document n. A cache of the BLOBs in SQLite."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from engram.store.files.home import FILE_MODE

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Matrix32 = npt.NDArray[np.float32]

_GROWTH_ROWS = 4096


class Matrix:
    """Reads by exact scan; written by the holder of the writer lock before the index commits."""

    def __init__(self, path: Path, dim: int) -> None:
        self._path = path
        self.dim = dim
        self._view: Matrix32 | None = None

    @property
    def exists(self) -> bool:
        """Whether the file is there."""
        return self._path.exists()

    def rows(self, count: int) -> "Matrix32":
        """The first `count` rows, without a copy."""
        if self._view is None or len(self._view) < count:
            self._view = self._map(count)
        return self._view[:count]

    def _map(self, count: int) -> "Matrix32":
        import numpy as np

        self._reserve(count)
        rows = self._path.stat().st_size // (4 * self.dim)
        # As a plain array: every operation on the memmap subclass pays for being one.
        return np.asarray(np.memmap(self._path, dtype=np.float32, mode="r", shape=(rows, self.dim)))

    def _reserve(self, count: int) -> None:
        size = 4 * self.dim * count
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
        try:
            if os.fstat(descriptor).st_size < size:
                os.ftruncate(descriptor, size + 4 * self.dim * max(_GROWTH_ROWS, count // 4))
        finally:
            os.close(descriptor)

    def write(self, numbers: Sequence[int], vectors: "Matrix32") -> None:
        """Put rows in place; runs of consecutive numbers, the usual case, are one write each."""
        if not len(numbers):
            return
        self._reserve(max(numbers) + 1)
        descriptor = os.open(self._path, os.O_RDWR | os.O_CLOEXEC)
        try:
            for start, end in _runs(numbers):
                os.pwrite(descriptor, vectors[start:end].tobytes(), numbers[start] * 4 * self.dim)
        finally:
            os.close(descriptor)

    def clear(self, numbers: Iterable[int]) -> None:
        """Zero some rows."""
        import numpy as np

        wanted = sorted(numbers)
        self.write(wanted, np.zeros((len(wanted), self.dim), dtype=np.float32))

    def remove(self) -> None:
        """Delete the file; it is made again from the BLOBs."""
        self._view = None
        self._path.unlink(missing_ok=True)


def _runs(numbers: Sequence[int]) -> Iterable[tuple[int, int]]:
    start = 0
    for i in range(1, len(numbers) + 1):
        if i == len(numbers) or numbers[i] != numbers[i - 1] + 1:
            yield start, i
            start = i


def boot_id() -> str:
    """Names this run of the machine: after a power loss the matrix may lack pages that SQLite has."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
