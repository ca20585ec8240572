"""A look into the index without opening the store: which files it knows as they are, and its vectors. Changes nothing."""

import contextlib
import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from engram.store.files.home import Home
from engram.store.files.index.writing import from_blob
from engram.store.files.journal import Position
from engram.store.files.memories import Stamp

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_VECTORS = (
    "SELECT d.id, t.meaning, v.vector FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value "
    "JOIN texts t ON t.n = d.n JOIN vectors v ON v.generation = ? AND v.n = d.n"
)


class Peek:
    """What an index says; nothing, where there is none that can be read. For one thread at a time."""

    def __init__(self, home: Home) -> None:
        self._connection: sqlite3.Connection | None = None
        with contextlib.suppress(sqlite3.Error):
            path = f"file:{quote(str(home.index / 'index.db'))}?mode=ro"
            self._connection = sqlite3.connect(path, uri=True, check_same_thread=False)
            self._meta: dict[str, Any] = dict(self._connection.execute("SELECT key, value FROM meta").fetchall())
            return
        self.close()
        self._meta = {}

    def close(self) -> None:
        """Let go of the index."""
        if self._connection is not None:
            self._connection.close()
        self._connection = None

    @property
    def embedder(self) -> str:
        """Who made its vectors."""
        return str(self._meta.get("embedder") or "")

    def stamps(self, end: Position) -> dict[str, Stamp]:
        """How each file without a fault looked when the index took it in; none unless the index has read the journal up to `end`."""
        read = json.loads(self._meta.get("journal") or "[]")[:2]
        if self._meta.get("filled") is None or read != [end.month, end.offset]:
            return {}
        rows = self._rows("SELECT path, mtime_ns, size, inode FROM files WHERE error = ''")
        return {path: Stamp(*stamp) for path, *stamp in rows}

    def vectors(self, ids: Sequence[str]) -> "Mapping[str, tuple[bytes, Vectors]]":
        """Vectors by document id, each with the digest of the text it was made of."""
        rows = self._rows(_VECTORS, json.dumps(list(ids)), int(self._meta.get("generation") or 1))
        return {i: (bytes(meaning), from_blob(blob)) for i, meaning, blob in rows}

    def _rows(self, text: str, *values: Any) -> list[tuple[Any, ...]]:
        if self._connection is None:
            return []
        try:
            return self._connection.execute(text, values).fetchall()
        except sqlite3.Error:
            return []
