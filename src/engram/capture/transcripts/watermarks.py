"""How far each session was harvested, or each conversation of an export imported, so that the next run reads only what is new.

A watermark of a session is what the session looked like (size, times, inode), the offset up to which its facts are staged, and a digest of the bytes before
it: a file that was truncated, replaced or rewritten is noticed, and read again from its beginning. Rows of a database have no order to rely on (clocks go
back, parts are added later): a session that changed there is read again as a whole.
"""

import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any, Self

from engram.agents.transcripts.session import StoredSession
from engram.disk import reading
from engram.model.lazy import dataclass, field
from engram.store.protocol import Store

SHARDS = 64
"""States over which the watermarks of a harness are spread: saving one rewrites only its state."""
HARVEST, CHATS = "harvest", "import"
"""The namespaces of states: sessions of harnesses, and conversations of exports."""
DIGEST_BLOCK_BYTES = 4096
"""Bytes of a block that a digest covers: before the offset, and in what follows `FULLY_DIGESTED_BYTES` one of every `DIGEST_STRIDE_BYTES`."""
FULLY_DIGESTED_BYTES = 64 * 1024 * 1024
"""Bytes from the beginning that a digest covers completely; few transcripts have more."""
DIGEST_STRIDE_BYTES = 1024 * 1024
_COMPLETE = "2:"
"""Begins a digest of everything; an older one covers the first and the last block."""


@dataclass(frozen=True, slots=True)
class Watermark:
    """How far one session is staged."""

    stamp: tuple[int, ...] = ()
    """What the session looked like; () if it was left in the middle."""
    offset: int = 0
    digest: str = ""

    @classmethod
    def of(cls, session: StoredSession, offset: int, *, is_complete: bool) -> Self:
        """The watermark of a session that was read up to an offset. Raises `OSError` if its file is gone."""
        digest = digest_before(session.path, offset) if session.grows else ""
        return cls(session.stamp if is_complete else (), offset, digest)

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        """A watermark as it was stored; None if it cannot be used."""
        match value:
            case [list(stamp), int(offset), str(digest)] if offset >= 0 and all(isinstance(one, int) for one in stamp):
                return cls(tuple(stamp), offset, digest)
        return None

    def to_json(self) -> list[Any]:
        """As JSON."""
        return [list(self.stamp), self.offset, self.digest]

    def start(self, session: StoredSession) -> int:
        """Where to go on reading: the offset, or 0 if the session is not what was read before, or may have changed anywhere."""
        if not session.grows:
            return 0
        size, _, inode = session.stamp[:3]
        if size < self.offset or (self.stamp and self.stamp[2] != inode):
            return 0
        if len(self.stamp) == len(session.stamp) and self.stamp[0] == size:
            return 0  # it was written to, and nothing was appended
        digest = digest_before if self.digest.startswith(_COMPLETE) else _digest_of_ends
        return self.offset if digest(session.path, self.offset) == self.digest else 0


@dataclass(slots=True)
class Watermarks:
    """The watermarks of one harness, or of one format of chats, as the store has them."""

    store: Store
    harness: str
    namespace: str = HARVEST
    _known: dict[str, Watermark] = field(default_factory=dict)
    _unsaved: dict[str, Watermark] = field(default_factory=dict)

    @classmethod
    def load(cls, store: Store, harness: str, namespace: str = HARVEST) -> Self:
        """Every watermark of a harness."""
        marks = cls(store, harness, namespace)
        for shard in range(SHARDS):
            found = ((key, Watermark.from_json(value)) for key, value in store.state(marks._state(shard)).items())
            marks._known.update((key, mark) for key, mark in found if mark is not None)
        return marks

    def of(self, session: StoredSession) -> Watermark | None:
        """The watermark of a session; None if it was never harvested."""
        return self.find_by_name(session.name)

    def find_by_name(self, name: str) -> Watermark | None:
        """The watermark of the session of this name."""
        return self._known.get(digest_of(name))

    def is_unchanged(self, session: StoredSession) -> bool:
        """Whether a session is as it was when all of it was staged."""
        mark = self.of(session)
        return mark is not None and mark.stamp == session.stamp

    def note(self, session: StoredSession, mark: Watermark) -> int:
        """Remember how far a session is staged, to be saved; returns how many are unsaved."""
        return self.note_named(session.name, mark)

    def note_named(self, name: str, mark: Watermark) -> int:
        """Remember how far the session of this name is staged, to be saved; returns how many are unsaved."""
        key = digest_of(name)
        self._known[key] = self._unsaved[key] = mark
        return len(self._unsaved)

    def save(self) -> None:
        """Save what was noted; durable when it returns."""
        shards: defaultdict[int, dict[str, Any]] = defaultdict(dict)
        for key, mark in self._unsaved.items():
            shards[int(key[:4], 16) % SHARDS][key] = mark.to_json()
        for shard, marks in sorted(shards.items()):
            self.store.change_state(self._state(shard), lambda value, marks=marks: {**value, **marks})  # type: ignore[misc]
        self._unsaved.clear()

    def _state(self, shard: int) -> str:
        return f"{self.namespace}/{self.harness}/{shard:02}"


def digest_before(path: Path, offset: int) -> str:
    """A digest of what a file has before an offset; of a very long one, of samples of its later part."""
    found = hashlib.sha256()
    with reading(path) as file:
        for begin in range(0, min(offset, FULLY_DIGESTED_BYTES), DIGEST_STRIDE_BYTES):
            found.update(file.read(min(DIGEST_STRIDE_BYTES, offset - begin)))
        for begin in (*range(FULLY_DIGESTED_BYTES, offset, DIGEST_STRIDE_BYTES), max(0, offset - DIGEST_BLOCK_BYTES)):
            file.seek(begin)
            found.update(file.read(min(DIGEST_BLOCK_BYTES, offset - begin)))
    return f"{_COMPLETE}{found.hexdigest()[:20]}"


def _digest_of_ends(path: Path, offset: int) -> str:
    """The digest that was stored before: of the first bytes of a file and of those just before an offset."""
    with reading(path) as file:
        head = file.read(min(DIGEST_BLOCK_BYTES, offset))
        file.seek(max(0, offset - DIGEST_BLOCK_BYTES))
        tail = file.read(min(DIGEST_BLOCK_BYTES, offset))
    return hashlib.sha256(head + tail).hexdigest()[:20]


def digest_of(text: str) -> str:
    """A digest that stands for a name in a state, which holds no text of users."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]
