"""A memory as stored by every backend (the mapping of its file), the versions of a fact, and the decisions in its history."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

from engram.dialects import engram_yaml
from engram.disk import to_json
from engram.model.arguments import refuse_deep
from engram.model.errors import InvalidInput, NotFound
from engram.model.memory import LIVE_STATUSES, Memory, Status
from engram.rules.sources import Rank, rank_of
from engram.store.protocol import Image, Store, Transaction
from engram.text.content_hash import same_text

MAX_RECORD_DEPTH = 99
"""Maximum nesting of a record: a file is a list of them, and is read to 100 levels."""


def decode_record(text: str) -> Memory:
    """A memory from its record's JSON."""
    return from_image(json.loads(text))


def from_image(mapping: Mapping[str, Any]) -> Memory:
    """The memory of an image."""
    return engram_yaml.from_mapping(mapping)


def image(memory: Memory) -> dict[str, Any]:
    """A memory as plain data, as in a journal and an index."""
    return engram_yaml.to_mapping(memory)


def readable_image(memory: Memory) -> dict[str, Any]:
    """A memory's image, proven to be readable: the journal must never contain an unreadable one."""
    return encoded_image(memory)[0]


def encoded_image(memory: Memory) -> tuple[dict[str, Any], str]:
    """The readable image, with its JSON."""
    mapping = image(memory)
    text = to_json(mapping)
    # With so few brackets, the nesting cannot be deeper.
    if text.count("{") + text.count("[") > MAX_RECORD_DEPTH:
        refuse_deep(mapping, memory.id, MAX_RECORD_DEPTH)
    from_image(mapping)
    return mapping, text


MAX_ID_DIGITS = 9
"""Longer numbers are a team's, which are random instead of sequential."""


def highest_numbers(memory_ids: Iterable[str]) -> dict[str, int]:
    """The highest number of each day."""
    highest: dict[str, int] = {}
    for memory_id in memory_ids:
        day, _, number = memory_id.rpartition("-")
        if number.isascii() and number.isdigit() and len(number) <= MAX_ID_DIGITS and day.startswith("ENG-"):
            highest[day] = max(highest.get(day, 0), int(number))
    return highest


ANSWERING_STATUSES: tuple[Status, ...] = ("active", "dormant", "archived")
"""The statuses of memories that answer questions.

Superseded ones only answer questions about the past, the others none.
"""


def heads_among(memories: Iterable[Memory | None], conflict_key: str, scope: str) -> list[Memory]:
    """The current memories with this conflict key in this scope."""
    return [
        m
        for m in memories
        if m is not None and m.conflict_key == conflict_key and m.scope == scope and m.status in LIVE_STATUSES
    ]


def versions_among(memories: Iterable[Memory], lineage_id: str) -> list[Memory]:
    """The versions of a fact in the order they were true; if a memory is given twice, the later one counts."""
    newest = {memory.id: memory for memory in memories}
    return sort_versions([m for m in newest.values() if lineage_id and m.lineage == lineage_id])


def sort_versions(versions: Sequence[Memory]) -> list[Memory]:
    """Sort versions by when they became true, but each before the one that superseded it, whatever the clock was."""
    starts = {memory.id: start_of(memory) for memory in versions}
    for memory in sorted(versions, key=lambda m: m.revision, reverse=True):
        starts[memory.id] = min(starts[memory.id], starts.get(memory.superseded_by, starts[memory.id]))
    return sorted(versions, key=lambda m: (starts[m.id], m.revision, m.id))


def start_of(memory: Memory) -> datetime:
    """The time since which a memory is true, if known."""
    return memory.valid_from or memory.when or datetime.min.replace(tzinfo=UTC)


def refuse_foreign_ids(store: Store, memories: Sequence[Memory]) -> None:
    """Raise `InvalidInput` if an alias is the id of another memory, with which it would be confused."""
    aliases = list(dict.fromkeys(alias for memory in memories for alias in memory.aliases))
    known = store.numbers(aliases) if aliases else {}
    for memory in memories if known else ():
        for alias in known.keys() & {*memory.aliases} - {memory.id}:
            other = store.get(alias)
            # A repetition of that memory.
            if other is not None and not same_text(other.statement, memory.statement):
                raise InvalidInput(f"the alias {alias!r} is the id of another memory; choose another")


def locked_memory(deciding: Transaction, memory_id: str) -> Memory:
    """A memory inside a transaction; raises `NotFound` if it has been purged."""
    memory = deciding.get(memory_id)
    if memory is None:
        raise NotFound(f"{memory_id} was purged in the meantime")
    return memory


def keep_update_time(memory: Memory, stored: Callable[[str], Memory | None]) -> Memory:
    """The memory with `updated` not before its beginning, if it was valid when last written.

    A clock that was set back would otherwise hide that it had begun.
    """
    since, written = memory.valid_from, memory.updated
    if since is None or written is None or since <= written or (memory.created is not None and since <= memory.created):
        return memory
    before = stored(memory.id)
    if before is None or before.valid_from != since or before.updated is None or before.updated < since:
        return memory
    return memory.replace(updated=before.updated)


ENGRAM_ACTOR = "engram"
"""The actor of Engram's own changes."""
USE_OPS = frozenset({"use", "rate", "derive"})
"""Operations that count uses, ratings and repetitions."""
_AUTOMATIC_OPS = frozenset({"use", "refresh", "split", "export", "redact_evidence"})
"""Operations without a decision.

These are usage and links from use, a longer time to live after a read, splitting a shared file, a name given by an
export, and removing purged evidence.
"""

ENDED_STATUSES = ("rejected", "retired", "superseded")
"""The statuses of memories that are no longer in use."""
CREATING_OPS = frozenset({"add", "learn", "import", "edit", "split", "separate", "revise"})
"""Operations that can begin a memory's history; a history that begins with another one was pruned."""
_STATUS_OPS = CREATING_OPS | {"reject", "forget", "distrust", "resolve", "merge", "approve", "undo", "compare"}
"""Operations that retire memories. Others, such as `verify`, find them already retired."""
_CONTENT_FIELDS = ("statement", "situation", "form", "type", "scope", "rationale", "supersedes", "pinned")


def is_automatic(entry: Image) -> bool:
    """Whether a journal entry results from use or upkeep, so that `undo` never reverts it.

    A repetition that only increases a count is automatic; if it changes the memory, its source is the actor.
    """
    return entry.op in _AUTOMATIC_OPS or (entry.op == "derive" and entry.actor == ENGRAM_ACTOR)


def status_decision(history: Sequence[Image]) -> Image | None:
    """The entry that gave a memory its status; None if that part of its history is missing."""
    for later, earlier in zip(reversed(history), reversed(history[:-1]), strict=False):
        if _status(later) != _status(earlier):
            return later
    known = bool(history) and (history[0].op in _STATUS_OPS or rank_of(history[0].actor) == Rank.PERSON)
    return history[0] if known else None


def is_decided_by_person(history: Sequence[Image]) -> bool:
    """Whether a person gave a memory its status; if unknown, it is assumed."""
    decided = status_decision(history)
    return decided is None or rank_of(decided.actor) == Rank.PERSON


def first_kept_seq(history: Sequence[Image]) -> int:
    """The number of the first entry that pruning must keep; for a retired memory, the decision that retired it."""
    last = history[-1] if history else None
    if last is None or _status(last) not in ENDED_STATUSES:
        return last.seq if last is not None else 0
    decided = status_decision(history)
    return decided.seq if decided is not None else last.seq


def is_reworded(history: Sequence[Image]) -> bool:
    """Whether anyone but a person has reworded a memory since it was stored, according to its remaining history."""
    if not history or history[0].op not in CREATING_OPS:
        return True
    for earlier, later in pairwise(history):
        said = [[getattr(image.memory, name, None) for name in _CONTENT_FIELDS] for image in (earlier, later)]
        if said[0] != said[1] and rank_of(later.actor) != Rank.PERSON:
            return True
    return False


def _status(image: Image) -> str:
    return image.memory.status if image.memory is not None else ""
