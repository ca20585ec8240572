"""Exports memories in the formats of other tools.

A memory's id in such a format is assigned once and kept as an alias.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any, Final

from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.dialects import memory_v1
from engram.dialects.source import EXPORT_PLACES, origin_of_path
from engram.disk import make_folder, remove_leftovers, replace_file
from engram.gates.trust import kind_of, tier_of
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.rules.lifecycle import is_stale
from engram.store.protocol import Filters, Progress, Store

EXPORT: Final = "export"
"""The journal operation that gives a memory its name in another format."""
EXPORT_BATCH_SIZE = 500
"""Memories per decision; bounds how long other writers wait."""
_NUMBERS = "export/memory.v1"
"""The state with the highest number ever assigned, so that none is assigned twice."""
_COUNTED = 10**8
"""Imported numbers from this one on do not advance the counter, which would soon run out."""


@dataclass(slots=True)
class ExportReport:
    """The number of memories written, and each one left out with its reason."""

    written: int = 0
    left_out: list[tuple[str, str]] = field(default_factory=list)


def export_memory_v1(
    store: Store, memories: Sequence[Memory], directory: Path, *, now: datetime, actor: str, force: bool
) -> ExportReport:
    """Write `memory.md` (tier 3) and `memory-log.md` (the others). Raises `InvalidInput` if a file is in the way."""
    memory_v1.refuse_overwriting(directory, force=force)
    done = ExportReport()
    kept = []
    for memory in memories:
        if memory_v1.has_status(memory):
            kept.append(memory)
        else:
            done.left_out.append((memory.id, f"memory.v1 has no status for what is {memory.status}"))
    ids = _assign_numbers(store, kept, now, actor)
    items = [
        memory_v1.MemoryItem(
            ids[memory.id], memory, kind_of(memory), tier_of(memory), is_stale(_by_day(memory), _day_of(now))
        )
        for memory in kept
        if memory.id in ids  # one may have been removed since it was listed
    ]
    make_folder(directory)
    remove_leftovers(directory)
    today = now.astimezone(UTC).date()
    for name in (memory_v1.CURATED, memory_v1.LOG):
        text = memory_v1.dump([item for item in items if item.file == name], today, file=name)
        replace_file(directory / name, text.encode())
    _note_place(store, directory, now)
    done.written = len(items)
    return done


def export_notes(
    store: Store,
    memories: Sequence[Memory],
    directory: Path,
    *,
    now: datetime,
    actor: str,
    force: bool,
    report: Progress,
) -> ExportReport:
    """Write one Markdown note per memory. Raises `InvalidInput` if a file is in the way."""
    from engram.dialects import notes

    names = {memory.id: name for memory in memories if (name := notes.name_in(memory.aliases))}
    notes.refuse_overwriting(directory, set(names.values()), force=force)
    nameless = [memory.id for memory in memories if memory.id not in names]
    if nameless:
        names |= assign_aliases(store, nameless, notes.name_in, notes.name_for, now=now, actor=actor, what="notes")
    written = [memory for memory in memories if memory.id in names]
    notes.write_notes(directory, written, names, force=force, report=report)
    _note_place(store, directory, now)
    return ExportReport(len(written))


def export_toml(
    store: Store, memories: Sequence[Memory], directory: Path, *, now: datetime, actor: str, force: bool
) -> ExportReport:
    """Write feedback and facts below `memory/`, one TOML file each. Raises `InvalidInput` if a file is in the way."""
    from engram.dialects import feedback_toml

    done = ExportReport()
    kept = []
    for memory in memories:
        if why := feedback_toml.why_left_out(memory):
            done.left_out.append((memory.id, why))
        else:
            kept.append(memory)
    names = {memory.id: name for memory in kept if (name := feedback_toml.name_in(memory.aliases))}
    nameless = [memory.id for memory in kept if memory.id not in names]
    if nameless:
        names |= assign_aliases(
            store, nameless, feedback_toml.name_in, feedback_toml.name_for, now=now, actor=actor, what="TOML"
        )
    written = [memory for memory in kept if memory.id in names]
    feedback_toml.write_feedback_toml(directory, written, names, force=force)
    _note_place(store, directory, now)
    done.written = len(written)
    return done


def _note_place(store: Store, directory: Path, now: datetime) -> None:
    """Record that this store wrote the notes in a folder, and when, to tell changes made there from changes made here."""
    place = origin_of_path("import", directory)
    store.change_state(EXPORT_PLACES, lambda known: {**known, place: now.isoformat()})


def _by_day(memory: Memory) -> Memory:
    """A memory with its dates cut to days, as written, so that it is exactly as stale for a reader of the file."""
    days = {
        name: _day_of(moment) for name in ("created", "last_verified") if (moment := getattr(memory, name)) is not None
    }
    return memory.replace(**days)


def _day_of(moment: datetime) -> datetime:
    return moment.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def _assign_numbers(store: Store, memories: Sequence[Memory], now: datetime, actor: str) -> dict[str, str]:
    """The `mem-NNNN` of each memory by its id; those without one get the next numbers."""
    known = {memory.id: name for memory in memories if (name := _name_in(memory.aliases))}
    nameless = [memory.id for memory in memories if memory.id not in known]
    if not nameless:
        return known
    fresh = _fresh_numbers(store, len(nameless))
    return known | assign_aliases(
        store, nameless, _name_in, lambda *_: next(fresh), now=now, actor=actor, what="memory.v1"
    )


def assign_aliases(
    store: Store,
    ids: Sequence[str],
    name_in: Callable[[Iterable[str]], str],
    new_name: Callable[[Memory, int], str],
    *,
    now: datetime,
    actor: str,
    what: str,
) -> dict[str, str]:
    """Give each memory its name in another format, as an alias, and return the names by id."""
    names: dict[str, str] = {}
    for start in range(0, len(ids), EXPORT_BATCH_SIZE):
        some = ids[start : start + EXPORT_BATCH_SIZE]
        given = set(names.values())

        def plan(memories: LockedMemories, some: Sequence[str] = some, given: set[str] = given) -> None:
            for memory in filter(None, map(memories.get, some)):
                name = name_in(memory.aliases)
                if not name:
                    attempts = (new_name(memory, attempt) for attempt in count())
                    name = next(name for name in attempts if name not in given and not _is_taken(store, name))
                    memories.put(memory.replace(aliases=(*memory.aliases, name)))
                given.add(name)
                names[memory.id] = name

        change = Change(op=EXPORT, actor=actor, plan=plan, note=f"its name in {what}", related=some)
        execute_change(store, lambda: now, change)
    return names


def _is_taken(store: Store, name: str) -> bool:
    try:
        return store.get(name) is not None
    except InvalidInput:  # of several
        return True


def _fresh_numbers(store: Store, wanted: int) -> Iterator[str]:
    """The next free numbers as names, reserved before use: a crash leaves a gap but never assigns a number twice."""
    names = (_name_in(memory.aliases) for memory in store.listing(Filters(statuses=None)))
    numbers = (memory_v1.number_in(name) for name in names if name)
    highest = max((number for number in numbers if number < _COUNTED), default=0)

    def reserve(known: Mapping[str, Any]) -> dict[str, Any]:
        last = int(known.get("last", 0))
        return {"last": max(last if last < memory_v1.LARGEST_NUMBER - wanted else 0, highest) + wanted}

    state = store.change_state(_NUMBERS, reserve)
    return (f"mem-{number:04d}" for number in count(int(state["last"]) - wanted + 1))


def _name_in(aliases: Iterable[str]) -> str:
    return next((alias for alias in aliases if memory_v1.ID.fullmatch(alias)), "")
