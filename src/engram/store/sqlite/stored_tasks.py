"""The task vectors of a store's memories, in a small file next to the index.

Each process that reads the file updates it. Like the index it is derived, and deleting it only slows down one session
start. It is written without a lock: the last writer wins, and missing vectors are computed again.
"""

import struct
from array import array
from binascii import crc32
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Self

from engram.disk import read_bytes, replace_file
from engram.embedding.word_pieces import BITS, code_of_bytes
from engram.model.lazy import cached_property, dataclass

Vector = bytes
_HEADER = struct.Struct("<8sqqqqqI")
_MAGIC = b"engtask3"
_CODE = BITS // 8
NO_VECTOR = bytes(BITS)
UNFINISHED_CHANGE = -1
MAX_COMPARED_MEMORIES = 20_000
"""How many of a store's newest memories are compared by task vector; older ones are found by their words."""


@dataclass(frozen=True, slots=True)
class TasksState:
    """The versions of the data that a file of task vectors was made from."""

    index: int
    """A checksum of the index's name: a recreated index numbers its memories differently."""
    generation: int
    """The generation of the index, which renumbers its memories when it is emptied."""
    change: int
    """The last change of the index that the file covers; UNFINISHED while memories are missing."""
    model: int
    """The model of the task vectors."""


def index_number(name: object) -> int:
    """The number of an index by its name."""
    return crc32(str(name).encode())


class StoredTasks:
    """Codes and vectors, by the number of the memory."""

    def __init__(
        self,
        state: TasksState,
        numbers: Sequence[int],
        changes: Sequence[int],
        codes: Iterable[int],
        vectors: memoryview,
    ) -> None:
        self.state, self._numbers, self._changes, self.vectors = state, numbers, changes, vectors
        self.codes = dict(zip(numbers, codes, strict=True))

    @property
    def changes(self) -> dict[int, int]:
        """The change of the index from which each vector was computed."""
        return dict(zip(self._numbers, self._changes, strict=True))

    @classmethod
    def empty(cls) -> Self:
        """Task vectors of no memories."""
        return cls(TasksState(0, -1, UNFINISHED_CHANGE, 0), (), (), (), memoryview(b""))

    @staticmethod
    def state_of(path: Path) -> TasksState | None:
        """The state of the current file; None if there is none."""
        try:
            with path.open("rb") as file:
                _, *state, _, _ = _HEADER.unpack(file.read(_HEADER.size))
        except (OSError, struct.error):
            return None
        return TasksState(*state)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the task vectors from a file; none if it is missing or damaged."""
        try:
            data = read_bytes(path)
            magic, index, generation, change, model, count, checksum = _HEADER.unpack_from(data)
        except (OSError, struct.error):
            return cls.empty()
        codes = _HEADER.size + 16 * count
        vectors = codes + _CODE * count
        if magic != _MAGIC or len(data) != vectors + BITS * count or crc32(data[_HEADER.size :]) != checksum:
            return cls.empty()
        head, read = array("q", data[_HEADER.size : codes]), int.from_bytes
        known = [read(data[at : at + _CODE]) for at in range(codes, vectors, _CODE)]
        state = TasksState(index, generation, change, model)
        return cls(state, head[:count], head[count:], known, memoryview(data)[vectors:])

    def vector(self, n: int) -> Vector:
        """The vector of a memory; zero if it is missing."""
        place = self._places.get(n)
        return NO_VECTOR if place is None else bytes(self.vectors[BITS * place : BITS * (place + 1)])

    @cached_property
    def _places(self) -> dict[int, int]:
        return {n: place for place, n in enumerate(self._numbers)}

    def _by_number(self) -> dict[int, Vector]:
        data = bytes(self.vectors)
        return {n: data[BITS * place : BITS * (place + 1)] for place, n in enumerate(self._numbers)}

    def keep_only(self, numbers: Container[int]) -> "StoredTasks":
        """Remove the vectors of memories that no longer exist."""
        kept, changes, vectors = [n for n in self._numbers if n in numbers], self.changes, self._by_number()
        data = b"".join([vectors[n] for n in kept])
        return StoredTasks(
            self.state, kept, [changes[n] for n in kept], [self.codes[n] for n in kept], memoryview(data)
        )

    def merge(self, state: TasksState, more: Mapping[int, Vector], changes: Mapping[int, int]) -> "StoredTasks":
        """Add vectors, replacing older ones of the same memories."""
        vectors, before = self._by_number() | dict(more), self.changes
        codes = [code_of_bytes(vector) if n in more else self.codes[n] for n, vector in vectors.items()]
        seen = [changes[n] if n in more else before[n] for n in vectors]
        return StoredTasks(state, list(vectors), seen, codes, memoryview(b"".join(vectors.values())))

    def write(self, path: Path) -> None:
        """Replace the file. If it cannot be written, a prompt finds all but the newest memories by their words alone."""
        state = self.state
        body = b"".join(
            [
                array("q", [*self._numbers, *self._changes]).tobytes(),
                *(code.to_bytes(_CODE) for code in self.codes.values()),
                self.vectors,
            ]
        )
        made_of = (state.index, state.generation, state.change, state.model)
        try:
            replace_file(path, _HEADER.pack(_MAGIC, *made_of, len(self.codes), crc32(body)) + body, durable=False)
        except OSError:
            return
