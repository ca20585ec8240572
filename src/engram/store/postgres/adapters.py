"""Texts and vectors as parameters of a statement, in the server's binary form."""

import struct
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection as AnyConnection

    Connection = AnyConnection[tuple[Any, ...]]
    from engram.embedding.protocol import Vectors


_pack_head = struct.Struct(">iiIii").pack
_pack_size = struct.Struct(">i").pack


class Texts(list[str]):
    """A `text[]` parameter. A plain list works, too, at four times the cost: psycopg inspects each item."""

    def to_binary(self, element_oid: int, encoding: str) -> bytes:
        """The array in the server's own binary form."""
        parts = [_pack_head(1, 0, element_oid, len(self), 1)]
        for text in self:
            item = text.encode(encoding)
            parts += (_pack_size(len(item)), item)
        return b"".join(parts)


def register_texts(connection: "Connection") -> None:
    """Register `Texts` with a connection."""
    from psycopg.adapt import Dumper
    from psycopg.postgres import types
    from psycopg.pq import Format

    text, encoding = types["text"], connection.info.encoding

    class TextsDumper(Dumper):
        oid = text.array_oid
        format = Format.BINARY

        def dump(self, obj: Texts) -> bytes:
            return obj.to_binary(text.oid, encoding)

    connection.adapters.register_dumper(Texts, TextsDumper)


_HEADER = 4


class HalfVector:
    """One vector as a parameter, with the precision the server stores."""

    def __init__(self, vector: "Vectors") -> None:
        self.vector = vector

    def to_binary(self) -> bytes:
        """A halfvec: its length, an unused short, then big-endian halves."""
        return struct.pack(">hh", len(self.vector), 0) + self.vector.astype(">f2").tobytes()


class VectorArray:
    """Many vectors as one parameter, in binary form: a thousand cost as much as one as text."""

    def __init__(self, vectors: "Sequence[Vectors]") -> None:
        self.vectors = vectors

    def to_binary(self, element_oid: int) -> bytes:
        """A one-dimensional array of halfvec."""
        import numpy as np

        halves = np.stack(self.vectors).astype(">f2")
        count, dim = halves.shape
        items = np.empty(count, dtype=[("size", ">i4"), ("dim", ">i2"), ("unused", ">i2"), ("halves", ">f2", (dim,))])
        items["size"], items["dim"], items["unused"], items["halves"] = _HEADER + 2 * dim, dim, 0, halves
        return struct.pack(">iiIii", 1, 0, element_oid, count, 1) + items.tobytes()


def register_vectors(connection: "Connection") -> None:
    """Register `HalfVector` and `VectorArray` with a connection; the types' oids differ between databases."""
    from psycopg.adapt import Dumper
    from psycopg.pq import Format

    row = connection.execute("SELECT 'halfvec'::regtype::oid, 'halfvec[]'::regtype::oid").fetchone()
    assert row is not None
    element, array = row

    class HalfVectorDumper(Dumper):
        oid = element
        format = Format.BINARY

        def dump(self, obj: HalfVector) -> bytes:
            return obj.to_binary()

    class VectorArrayDumper(Dumper):
        oid = array
        format = Format.BINARY

        def dump(self, obj: VectorArray) -> bytes:
            return obj.to_binary(element)

    connection.adapters.register_dumper(HalfVector, HalfVectorDumper)
    connection.adapters.register_dumper(VectorArray, VectorArrayDumper)


def from_binary(data: bytes) -> "Vectors":
    """The vector of a binary halfvec: two shorts, then big-endian halves."""
    import numpy as np

    return np.frombuffer(data, dtype=">f2", offset=_HEADER).astype(np.float32)


def rows_of(found: "Sequence[bytes | None]", dim: int) -> "Vectors":
    """The vectors of halfvecs, one row each; zeros for missing ones."""
    import numpy as np

    empty = bytes(_HEADER + 2 * dim)
    data = b"".join([empty if item is None else item for item in found])
    shape = [("header", f"V{_HEADER}"), ("halves", ">f2", (dim,))]
    return np.frombuffer(data, dtype=shape)["halves"].astype(np.float32)
