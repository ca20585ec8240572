"""Vectors as pgvector takes and gives them."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection as AnyConnection

    from engram.embedding.protocol import Vectors

    Connection = AnyConnection[tuple[Any, ...]]

_HEADER = 4


def as_text(vector: "Vectors") -> str:
    """A vector as pgvector reads it, at the precision it keeps."""
    import numpy as np

    return "[" + ",".join(map(str, vector.astype(np.float16).tolist())) + "]"


class VectorArray:
    """Many vectors as one parameter, in the server's own binary form: a thousand of them cost as much as one as text."""

    def __init__(self, vectors: "Sequence[Vectors]") -> None:
        self.vectors = vectors

    def dumped(self, element_oid: int) -> bytes:
        """A one-dimensional array of halfvec."""
        import struct

        import numpy as np

        halves = np.stack(self.vectors).astype(">f2")
        count, dim = halves.shape
        items = np.empty(count, dtype=[("size", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("halves", ">f2", (dim,))])
        items["size"], items["dim"], items["unused"], items["halves"] = _HEADER + 2 * dim, dim, 0, halves
        return struct.pack(">iiIii", 1, 0, element_oid, count, 1) + items.tobytes()


def register(connection: "Connection") -> None:
    """Teach a connection to send `VectorArray`; the types' numbers differ from database to database."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    row = connection.execute("SELECT 'halfvec'::regtype::oid, 'halfvec[]'::regtype::oid").fetchone()
    assert row is not None
    element, array = row

    class VectorArrayDumper(Dumper):
        oid = array
        format = Format.BINARY

        def dump(self, obj: VectorArray) -> bytes:
            return obj.dumped(element)

    connection.adapters.register_dumper(VectorArray, VectorArrayDumper)


def from_binary(data: bytes) -> "Vectors":
    """The vector of `halfvec_send`: two shorts, then big-endian halves."""
    import numpy as np

    return np.frombuffer(data, dtype=">f2", offset=_HEADER).astype(np.float32)
