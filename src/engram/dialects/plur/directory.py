"""Reads a PLUR directory, and writes memories to a new one. An existing directory is never changed."""

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from engram.dialects.engram_yaml import FIELD_KEYS, TEXT_KEYS, from_mapping, to_mapping
from engram.dialects.fields import plain_data
from engram.dialects.plur.entry import (
    EPISODE_ID,
    OWN_KEY,
    changes_in,
    from_plur,
    instant,
    remainder,
    to_plur,
    with_changes,
)
from engram.dialects.yaml_writer import check_text, emit_list
from engram.disk import sync_path
from engram.model.errors import InvalidInput, NotFound, StoreError, StoreReadOnly, UnknownVersion, UnreadableData
from engram.model.lazy import dataclass, field
from engram.model.memory import LIVE_STATUSES, Memory
from engram.readers.data import read_text
from engram.readers.yaml_parser import parse_yaml

_MOVED = {"summary": "statement", "timestamp": "occurred_at", "session_id": "session"}
_STATED = frozenset({*FIELD_KEYS, *_MOVED, OWN_KEY})
"""The fields of a memory that an episode states, without `extra`."""


def from_episode(entry: Mapping[str, Any]) -> Memory:
    """The memory in an episode; agent and channel stay in `extra`. Raises `InvalidInput` naming the field."""
    data = {_MOVED.get(key, key): value for key, value in entry.items()}
    moment = data.get("occurred_at")
    kind = {"type": "episodic", "memory_kind": "episode", "metadata": {"created": moment} if moment else None}
    changes = changes_in(data.pop(OWN_KEY, None))
    memory = from_mapping({**data, **kind})
    return (with_changes(to_mapping(memory), changes) or memory) if changes else memory


def is_episode(memory: Memory) -> bool:
    """Whether a memory is one of PLUR's episodes, or would be one there."""
    return memory.type == "episodic" and EPISODE_ID.fullmatch(memory.id) is not None


def to_episode(memory: Memory) -> dict[str, Any]:
    """The episode for a memory that came from one."""
    unknown = {key: value for key, value in plain_data(memory.extra).items() if key not in _STATED}
    entry: dict[str, Any] = {"id": memory.id, "summary": memory.statement, **unknown}
    if memory.session:
        entry["session_id"] = memory.session
    if memory.tags:
        entry["tags"] = list(memory.tags)
    if memory.when:
        entry["timestamp"] = instant(memory.when)
    kept = remainder(to_mapping(from_episode(entry)), to_mapping(memory))
    return {**entry, OWN_KEY: kept} if kept else entry


MAX_PLUR_FILE_BYTES = 256 * 1024 * 1024
"""PLUR keeps every engram in one file; 30,000 of them are 60 MB."""


def read_records(path: Path, key: str = "") -> tuple[list[Any], list[int]]:
    """A file's records, under `key` or as a bare list, and the line of each. A missing file has no records.

    Raises `UnreadableData` for a file that cannot be parsed.
    """
    try:
        text = read_text(path, MAX_PLUR_FILE_BYTES)
    except FileNotFoundError:
        return [], []
    except OSError as error:
        raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
    document = parse_yaml(text, where=str(path), longest=MAX_PLUR_FILE_BYTES, text_keys=TEXT_KEYS, list_key=key)
    tree = document.tree
    records = tree.get(key) if key and isinstance(tree, dict) else tree
    if not isinstance(records, list) or (key and not isinstance(tree, dict)):
        wanted = f"a mapping with the list `{key}:`" if key else "a list"
        raise UnreadableData(f"no records; expected {wanted}. The file is unchanged", where=str(path), line=1)
    return records, document.lines


def records_text(records: Sequence[Mapping[str, Any]], key: str = "") -> str:
    """The text of a file with some records, under `key` or as a bare list."""
    if not key:
        return emit_list(records) if records else "[]\n"
    return f"{key}:\n{emit_list(records, '  ')}" if records else f"{key}: []\n"


def write_new(path: Path, text: str) -> None:
    """Write a new file durably. Raises `OSError`, also if it exists."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(handle)
    sync_path(path.parent)


ENGRAMS, EPISODES, CANDIDATES, TENSIONS = "engrams.yaml", "episodes.yaml", "candidates.yaml", "tensions.yaml"


@dataclass(slots=True)
class PlurReading:
    """The contents of a PLUR directory. Iteration yields the memories."""

    memories: dict[str, Memory] = field(default_factory=dict)
    quarantined: list[tuple[str, str]] = field(default_factory=list)
    """The position of each unreadable record, and the reason."""
    not_read: list[str] = field(default_factory=list)
    """Files and counts of records that Engram does not use, so that every omission is reported."""

    def __iter__(self) -> Iterator[Memory]:
        return iter(self.memories.values())

    def take(self, path: Path, key: str, read: Callable[[Mapping[str, Any]], Memory]) -> None:
        """Read a file's records; unusable ones are quarantined."""
        records, lines = read_records(path, key)
        for index, record in enumerate(records):
            where = f"{path} record {index + 1}"
            try:
                if not isinstance(record, Mapping):
                    raise InvalidInput(f"a record must be a block of fields, is {record!r:.60}")
                memory = read(record)
            except (InvalidInput, UnknownVersion) as error:
                line = f", line {lines[index]}" if index < len(lines) else ""
                self.quarantined.append((where + line, str(error)))
                continue
            if self.memories.setdefault(memory.id, memory) != memory:
                self.quarantined.append((where, f"{memory.id} stands in the directory twice; the first one was read"))

    def pass_over(self, path: Path, key: str, what: str) -> None:
        """Count a file's records without reading them."""
        records = read_records(path, key)[0]
        if records:
            self.not_read.append(f"{path}: {len(records)} records ({what})")


def read_plur(directory: Path, *, packs: bool = False) -> PlurReading:
    """Read a PLUR directory (or its engrams.yaml). Raises `NotFound` or `UnreadableData`; single bad records do not."""
    root = directory.parent if directory.is_file() else directory
    if not (root / ENGRAMS).is_file():
        raise NotFound(f"{root}: holds no {ENGRAMS}; give the directory PLUR keeps, usually ~/.plur")
    reading = PlurReading()
    reading.take(root / ENGRAMS, "engrams", from_plur)
    if (root / CANDIDATES).is_file():
        reading.take(root / CANDIDATES, "engrams", lambda entry: from_plur({"status": "candidate", **entry}))
    reading.take(root / EPISODES, "", from_episode)
    for pack in sorted((root / "packs").glob("*/engrams.yaml")):
        if packs:
            reading.take(pack, "engrams", from_plur)
        else:
            reading.pass_over(pack, "engrams", "a pack")
    reading.pass_over(root / TENSIONS, "", "contradictions PLUR found")
    reading.memories = {memory.id: memory for memory in _complete_supersessions(reading.memories)}
    return reading


def _complete_supersessions(memories: Mapping[str, Memory]) -> Iterator[Memory]:
    """The memories with every supersession recorded at both ends, whichever end PLUR has it from."""
    heirs = {m.id: m.superseded_by for m in memories.values() if m.superseded_by in memories}
    for memory in memories.values():
        for older in memory.supersedes if memory.status in LIVE_STATUSES else ():
            if older in memories:
                heirs.setdefault(older, memory.id)
    both = dict(memories)
    for older, heir in heirs.items():
        memory, later = both[older], both[heir]
        if memory.status in LIVE_STATUSES and older != heir:
            both[older] = memory.replace(status="superseded", superseded_by=heir)
        if older not in later.supersedes and older != heir:
            both[heir] = later.replace(supersedes=(*later.supersedes, older))
    return (_as_version(memory, both) for memory in both.values())


def _as_version(memory: Memory, memories: Mapping[str, Memory]) -> Memory:
    """The memory as a version of the fact that it shares with the memory it superseded."""
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
    return memory.replace(lineage=first.lineage or first.id, revision=number)


def write_plur(
    directory: Path, memories: Iterable[Memory], *, now: datetime, actor: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """Create a PLUR directory from memories.

    It must be empty or absent, because PLUR's own directories are never changed.

    Returns the ids written, and the id and reason of each omitted memory. Raises `InvalidInput` if something exists
    already, `StoreReadOnly` if nothing can be written.
    """
    _refuse_used(directory)
    left_out: list[tuple[str, str]] = []
    engrams: dict[str, dict[str, Any]] = {}
    episodes: dict[str, dict[str, Any]] = {}
    today = now.astimezone(UTC).date().isoformat()
    for memory in memories:
        try:
            _add(memory, today, engrams, episodes)
        except InvalidInput as error:
            left_out.append((memory.id, str(error)))
    try:
        (directory / "history").mkdir(mode=0o700, parents=True, exist_ok=True)
        history = directory / "history" / f"{now.astimezone(UTC):%Y-%m}.jsonl"
        write_new(history, "".join(_event(entry, now, actor) for entry in engrams.values()))
        if episodes:
            write_new(directory / EPISODES, records_text(list(episodes.values())))
        # Last, because a directory without it is not a PLUR directory.
        write_new(directory / ENGRAMS, records_text(list(engrams.values()), "engrams"))
    except OSError as error:
        raise StoreReadOnly(f"{directory}: cannot be written: {error.strerror}; choose another place") from error
    return [*engrams, *episodes], left_out


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
    """A line of PLUR's history, which PLUR reads back so as never to assign an id twice."""
    data = {"type": entry["type"], "scope": entry["scope"], "source": entry.get("source", actor)}
    event = {
        "event": "engram_created",
        "engram_id": entry["id"],
        "timestamp": instant(now),
        "data": data,
        "actor": actor,
    }
    return json.dumps(event, ensure_ascii=False, separators=(",", ":")) + "\n"
