"""Exports memories in the formats of other tools. What the format calls a memory is minted once and kept as an alias."""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from engram.dialects import memory_v1
from engram.disk import make_folder, replace_file
from engram.gates.trust import kind_of, tier_of
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.rules.eligibility import is_stale
from engram.store.protocol import Filters, Store

EXPORT = "export"
"""The operation in the journal that gives a memory the name it has in another format."""
Report = Callable[[str, int, int], None]
_NUMBERS = "export/memory.v1"
"""The state that keeps the highest number ever given, so that none is given twice."""


@dataclass(slots=True)
class Exported:
    """The number of memories written, and each one left out with its reason."""

    written: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)


def export_memory_v1(
    store: Store, memories: Sequence[Memory], directory: Path, *, now: datetime, actor: str, force: bool
) -> Exported:
    """Write `memory.md` (tier 3) and `memory-log.md` (the others). Raises `InvalidInput` where a file is in the way."""
    memory_v1.refuse_overwriting(directory, force=force)
    done = Exported()
    kept = []
    for memory in memories:
        if memory_v1.has_status(memory):
            kept.append(memory)
        else:
            done.left_out.append((memory.id, f"memory.v1 has no status for what is {memory.status}"))
    ids = _numbered(store, kept, actor)
    items = [
        memory_v1.MemoryItem(ids[memory.id], memory, kind_of(memory), tier_of(memory), is_stale(_by_day(memory), now))
        for memory in kept
    ]
    make_folder(directory)
    today = now.astimezone(UTC).date()
    for name in (memory_v1.CURATED, memory_v1.LOG):
        text = memory_v1.dump([item for item in items if item.file == name], today, file=name)
        replace_file(directory / name, text.encode())
    done.written = len(items)
    return done


def export_notes(
    store: Store, memories: Sequence[Memory], directory: Path, *, actor: str, force: bool, report: Report
) -> Exported:
    """Write one Markdown note per memory. Raises `InvalidInput` where a file is in the way."""
    from engram.dialects import notes

    names = {memory.id: name for memory in memories if (name := notes.name_in(memory.aliases))}
    nameless = [memory.id for memory in memories if memory.id not in names]
    if nameless:
        names |= minted(store, nameless, notes.name_in, notes.name_for, actor=actor, what="notes")
    notes.write_notes(directory, memories, names, force=force, report=report)
    return Exported(len(memories))


def _by_day(memory: Memory) -> Memory:
    """A memory with the dates that are written, so that it is as stale for a reader of the file as it is here."""
    days = {
        name: moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
        for name in ("created", "last_verified")
        if (moment := getattr(memory, name)) is not None
    }
    return memory.but(**days)


def _numbered(store: Store, memories: Sequence[Memory], actor: str) -> dict[str, str]:
    """The `mem-NNNN` of each memory by its id; those without one get the next numbers."""
    known = {memory.id: name for memory in memories if (name := _name_in(memory.aliases))}
    nameless = [memory.id for memory in memories if memory.id not in known]
    if not nameless:
        return known
    highest = max((_number(_name_in(memory.aliases)) for memory in _all(store)), default=0)
    names = _Numbers(store, highest, len(nameless))
    return known | minted(store, nameless, _name_in, lambda _: names.next(), actor=actor, what="memory.v1")


def minted(
    store: Store,
    ids: Sequence[str],
    name_in: Callable[[Iterable[str]], str],
    new_name: Callable[[Memory], str],
    *,
    actor: str,
    what: str,
) -> dict[str, str]:
    """Give each memory the name it has in another format, as an alias, in one decision; the names by id.

    A memory that got one meanwhile keeps that.
    """
    names: dict[str, str] = {}
    with store.deciding(EXPORT, actor=actor, reason=f"its name in {what}", about=ids) as deciding:
        for memory_id in ids:
            memory = deciding.get(memory_id)
            if memory is None:
                continue
            names[memory_id] = name_in(memory.aliases) or new_name(memory)
            if names[memory_id] not in memory.aliases:
                deciding.put(memory.but(aliases=(*memory.aliases, names[memory_id])))
    return names


class _Numbers:
    """The next free numbers, reserved before they are used: a crash leaves a gap, and never gives a number twice."""

    def __init__(self, store: Store, highest: int, count: int) -> None:
        self._store, self._highest = store, highest
        self._next = self._reserve(count)

    def next(self) -> str:
        while True:
            number = self._next if self._next <= self._last else self._reserve(1)
            self._next = number + 1
            name = f"mem-{number:04d}"
            if self._store.get(name) is None:
                return name

    def _reserve(self, count: int) -> int:
        state = self._store.change_state(
            _NUMBERS, lambda known: {"last": max(int(known.get("last", 0)), self._highest) + count}
        )
        self._last = int(state["last"])
        return self._last - count + 1


def _all(store: Store) -> list[Memory]:
    return store.listing(Filters(statuses=None))


def _name_in(aliases: Iterable[str]) -> str:
    return next((alias for alias in aliases if memory_v1.ID.fullmatch(alias)), "")


def _number(name: str) -> int:
    return int(name.removeprefix("mem-")) if name else 0
