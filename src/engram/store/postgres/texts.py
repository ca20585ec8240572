"""Texts as one parameter of a statement."""

import struct
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from psycopg import Connection as AnyConnection

    Connection = AnyConnection[tuple[Any, ...]]

_pack_head = struct.Struct(">iiIii").pack
_pack_size = struct.Struct(">i").pack


class Texts(list[str]):
    """A `text[]` for a statement that takes many. A plain list is one as well, at four times the cost: each item is asked
    what it is.
    """

    def dumped(self, element_oid: int, encoding: str) -> bytes:
        """The array in the server's own binary form."""
        parts = [_pack_head(1, 0, element_oid, len(self), 1)]
        for text in self:
            item = text.encode(encoding)
            parts += (_pack_size(len(item)), item)
        return b"".join(parts)


def register(connection: "Connection") -> None:
    """Teach a connection to send `Texts`."""
    from psycopg.adapt import Dumper
    from psycopg.postgres import types
    from psycopg.pq import Format

    text, encoding = types["text"], connection.info.encoding

    class TextsDumper(Dumper):
        oid = text.array_oid
        format = Format.BINARY

        def dump(self, obj: Texts) -> bytes:
            return obj.dumped(text.oid, encoding)

    connection.adapters.register_dumper(Texts, TextsDumper)
