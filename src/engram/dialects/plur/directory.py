"""A PLUR directory as a whole: what is in it, and what Engram adds to it."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.dialects.engram_yaml import as_written
from engram.dialects.plur.entry import from_plur, to_plur
from engram.dialects.plur.episodes import from_episode, is_episode, to_episode
from engram.dialects.plur.lock import DEFAULT_WAIT, plur_lock
from engram.dialects.plur.project import instant
from engram.dialects.plur.records import append_synced, changed_text, read_records, replace_file
from engram.dialects.plur.vocabulary import OWN_KEY
from engram.dialects.scalars import check_text
from engram.dialects.values import FieldError, read_time
from engram.model.errors import InvalidInput, NotFound, StoreReadOnly, UnknownVersion
from engram.model.memory import Memory

ENGRAMS, EPISODES, CANDIDATES, TENSIONS = "engrams.yaml", "episodes.yaml", "candidates.yaml", "tensions.yaml"

_OURS = frozenset(
    {"rationale", "source", "domain", "activation", "relations", "entities", "temporal", "episodic", "pinned"}
) | {"created_at", "updated_at", "metadata", OWN_KEY}
"""Optional keys that Engram decides: what a memory no longer has, leaves the entry too."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A record that could not be read, as it stands in its file, and why."""

    where: str
    reason: str
    record: Any


@dataclass(frozen=True, slots=True)
class PlurReading:
    """What a PLUR directory holds. Iterating gives the memories."""

    memories: tuple[Memory, ...] = ()
    quarantined: tuple[Quarantined, ...] = ()
    not_read: tuple[str, ...] = ()
    """Files and counts of what Engram has no use for, so that nothing is passed over in silence."""

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories)

    def __len__(self) -> int:
        return len(self.memories)


@dataclass(slots=True)
class PlurReport:
    """What became of each memory written to a PLUR directory, by id there."""

    created: list[str] = field(default_factory=list)
    updated: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Id and reason of each memory that was not written."""
    kept: int = 0
    """Records of others that stayed as they were."""


def read_plur(directory: Path, *, episodes: bool = True, packs: bool = False) -> PlurReading:
    """Read a PLUR directory (or its engrams.yaml). Raises `NotFound` or `StoreCorrupt`; single bad records do not."""
    root = directory.parent if directory.is_file() else directory
    if not (root / ENGRAMS).is_file():
        raise NotFound(f"{root}: holds no {ENGRAMS}; give the directory PLUR keeps, usually ~/.plur")
    reading = _Reading()
    reading.take(root / ENGRAMS, "engrams", from_plur)
    if (root / CANDIDATES).is_file():
        reading.take(root / CANDIDATES, "engrams", _candidate)
    if episodes:
        reading.take(root / EPISODES, "", from_episode)
    for pack in sorted((root / "packs").glob("*/engrams.yaml")):
        if packs:
            reading.take(pack, "engrams", from_plur)
        else:
            reading.pass_over(pack, "engrams", "a pack")
    reading.pass_over(root / TENSIONS, "", "contradictions PLUR found")
    return PlurReading(tuple(reading.memories.values()), tuple(reading.quarantined), tuple(reading.not_read))


def _candidate(entry: Mapping[str, Any], *, where: str = "") -> Memory:
    return from_plur({"status": "candidate", **entry}, where=where)


class _Reading:
    """Collects memories by id; what does not fit is quarantined."""

    def __init__(self) -> None:
        self.memories: dict[str, Memory] = {}
        self.quarantined: list[Quarantined] = []
        self.not_read: list[str] = []

    def take(self, path: Path, key: str, read: Callable[..., Memory]) -> None:
        text, records = read_records(path, key)
        for index, record in enumerate(as_written(text, records, key=key)):
            where = f"{path} record {index + 1}"
            try:
                memory = read(_block(record))
            except (InvalidInput, UnknownVersion) as error:
                self.quarantined.append(Quarantined(where, str(error), record))
                continue
            if memory.id in self.memories and self.memories[memory.id] != memory:
                reason = f"{memory.id} stands in the directory twice; the first one was read"
                self.quarantined.append(Quarantined(where, reason, record))
            else:
                self.memories[memory.id] = memory

    def pass_over(self, path: Path, key: str, what: str) -> None:
        records = read_records(path, key)[1]
        if records:
            self.not_read.append(f"{path}: {len(records)} records ({what})")


def _block(record: Any) -> Mapping[str, Any]:
    if isinstance(record, Mapping):
        return record
    raise InvalidInput(f"a record must be a block of fields, is {record!r:.60}")


def write_plur(
    directory: Path, memories: Iterable[Memory], *, now: datetime, actor: str, wait: float = DEFAULT_WAIT
) -> PlurReport:
    """Merge memories into a PLUR directory under its own lock; records of others stay as they are.

    Raises `StoreBusy` when the lock is held for longer than `wait` seconds, `StoreCorrupt` when a file there cannot be
    read; then nothing is written.
    """
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreReadOnly(
            f"{directory}: cannot be made a directory: {error.strerror}; nothing was written"
        ) from error
    report = PlurReport()
    engrams: dict[str, dict[str, Any]] = {}
    episodes: dict[str, dict[str, Any]] = {}
    today = now.astimezone(UTC).date().isoformat()
    for memory in memories:
        try:
            _add(memory, today, engrams, episodes)
        except InvalidInput as error:
            report.left_out.append((memory.id, str(error)))
    history = _merge(directory / ENGRAMS, "engrams", engrams, report, wait)
    if episodes:
        _merge(directory / EPISODES, "", episodes, report, wait)
    _append_history(directory, history, now, actor)
    return report


def _add(memory: Memory, today: str, engrams: dict[str, dict[str, Any]], episodes: dict[str, dict[str, Any]]) -> None:
    if not memory.statement:
        raise InvalidInput("PLUR takes no empty statement")
    entry = to_episode(memory) if is_episode(memory) else to_plur(memory, today=today)
    check_text(entry)
    group = episodes if is_episode(memory) else engrams
    if entry["id"] in group:
        raise InvalidInput(f"{entry['id']} was given twice; the first one was written")
    group[entry["id"]] = entry


def _merge(
    path: Path, key: str, entries: Mapping[str, dict[str, Any]], report: PlurReport, wait: float
) -> list[tuple[str, dict[str, Any], dict[str, Any] | None]]:
    """Merge entries into one file; returns what changed as (event, entry, entry before)."""
    with plur_lock(path, wait=wait):
        text, records = read_records(path, key)
        changes: dict[int, Any] = {}
        events: list[tuple[str, dict[str, Any], dict[str, Any] | None]] = []
        seen = set()
        for index, record in enumerate(records):
            name = record.get("id") if isinstance(record, dict) else None
            if not isinstance(name, str) or name not in entries or name in seen:
                report.kept += 1
                continue
            seen.add(name)
            entry = _updated(record, entries[name], report)
            if entry is not None:
                changes[index] = entry
                events.append(("engram_updated", entry, record))
        added = [entry for name, entry in entries.items() if name not in seen]
        report.created += [entry["id"] for entry in added]
        events += [("engram_created", entry, None) for entry in added]
        if events or not text:
            replace_file(path, changed_text(text, key, records, changes, added))
    return events


def _updated(record: dict[str, Any], entry: dict[str, Any], report: PlurReport) -> dict[str, Any] | None:
    """The record with Engram's values, or None if nothing changes. PLUR's own fields keep PLUR's values."""
    theirs = {key: value for key, value in record.items() if key not in _OURS}
    ours = {key: value for key, value in entry.items() if key in _OURS or key not in record or key in _MAPPED}
    merged = {**theirs, **ours}
    if merged == record or _same_memory(merged, record):
        report.unchanged.append(entry["id"])
        return None
    if _moment(record) > _moment(entry):
        report.left_out.append((entry["id"], "PLUR changed it later; import it from there first"))
        return None
    report.updated.append(entry["id"])
    return merged


def _same_memory(merged: dict[str, Any], record: dict[str, Any]) -> bool:
    """Whether a record lacks nothing but defaults that Engram would spell out."""
    read = from_episode if "summary" in merged else from_plur
    try:
        return read(merged) == read(record)
    except (InvalidInput, UnknownVersion):
        return False


_MAPPED = frozenset(
    {"version", "status", "consolidated", "type", "scope", "statement", "derivation_count", "tags", "associations"}
) | {"knowledge_anchors", "feedback_signals", "content_hash", "summary", "timestamp", "session_id"}
"""Keys every entry of Engram's carries; their values are Engram's."""


def _moment(entry: Mapping[str, Any]) -> datetime:
    try:
        return read_time(entry.get("updated_at") or entry.get("created_at") or "0001-01-01")
    except FieldError:
        return datetime.min.replace(tzinfo=UTC)


def _append_history(
    directory: Path, events: Iterable[tuple[str, dict[str, Any], dict[str, Any] | None]], now: datetime, actor: str
) -> None:
    """Tell PLUR's history; it reads creations back so as never to give an id twice."""
    lines = [
        json.dumps(_event(name, entry, before, now, actor), ensure_ascii=False, separators=(",", ":"))
        for name, entry, before in events
    ]
    if lines:
        folder = directory / "history"
        folder.mkdir(mode=0o700, exist_ok=True)
        append_synced(folder / f"{now.astimezone(UTC):%Y-%m}.jsonl", "\n".join(lines) + "\n")


def _event(
    name: str, entry: Mapping[str, Any], before: Mapping[str, Any] | None, now: datetime, actor: str
) -> dict[str, Any]:
    data: dict[str, Any] = {"type": entry["type"], "scope": entry["scope"], "source": entry.get("source", actor)}
    if before is not None:
        data = {
            "old_statement": before.get("statement"),
            "new_statement": entry["statement"],
            "reason": f"written by {actor}",
        }
    return {"event": name, "engram_id": entry["id"], "timestamp": instant(now), "data": data, "actor": actor}
