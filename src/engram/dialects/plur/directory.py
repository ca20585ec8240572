"""A PLUR directory as a whole: what is in one, and a new one made of memories. One that is there is never changed."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.dialects.plur.entry import from_plur, to_plur
from engram.dialects.plur.episodes import from_episode, is_episode, to_episode
from engram.dialects.plur.project import instant
from engram.dialects.plur.records import read_records, records_text, write_new
from engram.dialects.yaml_writer import check_text
from engram.model.errors import InvalidInput, NotFound, StoreReadOnly, UnknownVersion
from engram.model.memory import Memory

IN_FORCE = ("active", "dormant")
ENGRAMS, EPISODES, CANDIDATES, TENSIONS = "engrams.yaml", "episodes.yaml", "candidates.yaml", "tensions.yaml"


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
    left_out: list[tuple[str, str]] = field(default_factory=list)
    """Id and reason of each memory that was not written."""


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
    found = _superseded(reading.memories)
    return PlurReading(tuple(found), tuple(reading.quarantined), tuple(reading.not_read))


def _superseded(memories: Mapping[str, Memory]) -> Iterator[Memory]:
    """The memories with every supersession told by both its ends, whichever of them PLUR has it from."""
    heirs = {m.id: m.superseded_by for m in memories.values() if m.superseded_by in memories}
    for memory in memories.values():
        for older in memory.supersedes if memory.status in IN_FORCE else ():
            if older in memories:
                heirs.setdefault(older, memory.id)
    both = dict(memories)
    for older, heir in heirs.items():
        memory, later = both[older], both[heir]
        if memory.status in IN_FORCE and older != heir:
            both[older] = memory.but(status="superseded", superseded_by=heir)
        if older not in later.supersedes and older != heir:
            both[heir] = later.but(supersedes=(*later.supersedes, older))
    return (_as_version(memory, both) for memory in both.values())


def _as_version(memory: Memory, memories: Mapping[str, Memory]) -> Memory:
    """The memory as a version of the fact that it and what it superseded tell of."""
    chain = [memory]
    while not chain[-1].lineage and len(chain) <= len(memories):
        older = next((memories[name] for name in chain[-1].supersedes if name in memories), None)
        if older is None:
            break
        chain.append(older)
    if memory.lineage or (len(chain) == 1 and memory.superseded_by not in memories):
        return memory
    first = chain[-1]
    number = (first.revision if first.lineage else 1) + len(chain) - 1
    return memory.but(lineage=first.lineage or first.id, revision=number)


def _candidate(entry: Mapping[str, Any], *, where: str = "") -> Memory:
    return from_plur({"status": "candidate", **entry}, where=where)


class _Reading:
    """Collects memories by id; what does not fit is quarantined."""

    def __init__(self) -> None:
        self.memories: dict[str, Memory] = {}
        self.quarantined: list[Quarantined] = []
        self.not_read: list[str] = []

    def take(self, path: Path, key: str, read: Callable[..., Memory]) -> None:
        records, lines = read_records(path, key)
        for index, record in enumerate(records):
            where = f"{path} record {index + 1}"
            try:
                memory = read(_block(record))
            except (InvalidInput, UnknownVersion) as error:
                line = f", line {lines[index]}" if index < len(lines) else ""
                self.quarantined.append(Quarantined(where + line, str(error), record))
                continue
            if memory.id in self.memories and self.memories[memory.id] != memory:
                reason = f"{memory.id} stands in the directory twice; the first one was read"
                self.quarantined.append(Quarantined(where, reason, record))
            else:
                self.memories[memory.id] = memory

    def pass_over(self, path: Path, key: str, what: str) -> None:
        records = read_records(path, key)[0]
        if records:
            self.not_read.append(f"{path}: {len(records)} records ({what})")


def _block(record: Any) -> Mapping[str, Any]:
    if isinstance(record, Mapping):
        return record
    raise InvalidInput(f"a record must be a block of fields, is {record!r:.60}")


def write_plur(directory: Path, memories: Iterable[Memory], *, now: datetime, actor: str) -> PlurReport:
    """Make a PLUR directory of memories. It must be empty or absent: what PLUR keeps and changes is PLUR's alone.

    Raises `InvalidInput` where something is there already, `StoreReadOnly` where nothing can be written.
    """
    _refuse_used(directory)
    report = PlurReport()
    engrams: dict[str, dict[str, Any]] = {}
    episodes: dict[str, dict[str, Any]] = {}
    today = now.astimezone(UTC).date().isoformat()
    for memory in memories:
        try:
            _add(memory, today, engrams, episodes)
        except InvalidInput as error:
            report.left_out.append((memory.id, str(error)))
    try:
        (directory / "history").mkdir(mode=0o700, parents=True, exist_ok=True)
        history = directory / "history" / f"{now.astimezone(UTC):%Y-%m}.jsonl"
        write_new(history, "".join(_event(entry, now, actor) for entry in engrams.values()))
        if episodes:
            write_new(directory / EPISODES, records_text(list(episodes.values())))
        # Last: a directory without it is none of PLUR's.
        write_new(directory / ENGRAMS, records_text(list(engrams.values()), "engrams"))
    except OSError as error:
        raise StoreReadOnly(f"{directory}: cannot be written: {error.strerror}; choose another place") from error
    report.created += [*engrams, *episodes]
    return report


def _refuse_used(directory: Path) -> None:
    if directory.is_dir() and not any(directory.iterdir()):
        return
    if directory.is_dir():
        raise InvalidInput(
            f"{directory} is not empty, and a directory PLUR may have changed is not written to; give a new one, and "
            "let PLUR import it from there, or start PLUR with PLUR_PATH set to it"
        )
    if directory.exists() or directory.is_symlink():
        raise InvalidInput(f"{directory} is not a directory; give the name of a new one")


def _add(memory: Memory, today: str, engrams: dict[str, dict[str, Any]], episodes: dict[str, dict[str, Any]]) -> None:
    if not memory.statement:
        raise InvalidInput("PLUR takes no empty statement")
    entry = to_episode(memory) if is_episode(memory) else to_plur(memory, today=today)
    check_text(entry)
    group = episodes if is_episode(memory) else engrams
    if entry["id"] in group:
        raise InvalidInput(f"{entry['id']} was given twice; the first one was written")
    group[entry["id"]] = entry


def _event(entry: Mapping[str, Any], now: datetime, actor: str) -> str:
    """A line of PLUR's history, which it reads back so as never to give an id twice."""
    data = {"type": entry["type"], "scope": entry["scope"], "source": entry.get("source", actor)}
    event = {
        "event": "engram_created",
        "engram_id": entry["id"],
        "timestamp": instant(now),
        "data": data,
        "actor": actor,
    }
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"
