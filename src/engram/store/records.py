"""A memory as every backend keeps it (the mapping of its file), the versions of a fact, and who decided what about it by its history in the journal."""

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
"""Levels of a record: a file is a list of them, and is read to 100."""


def decode_record(text: str) -> Memory:
    """A memory from its record's JSON."""
    return from_image(json.loads(text))


def from_image(mapping: Mapping[str, Any]) -> Memory:
    """The memory of an image."""
    return engram_yaml.from_mapping(mapping)


def image(memory: Memory) -> dict[str, Any]:
    """A memory as a journal and an index keep it."""
    return engram_yaml.to_mapping(memory)


def readable_image(memory: Memory) -> dict[str, Any]:
    """A memory's image, proven to read back: what is journaled must never be what no one can read."""
    return encoded_image(memory)[0]


def encoded_image(memory: Memory) -> tuple[dict[str, Any], str]:
    """The same, with its JSON."""
    mapping = image(memory)
    text = to_json(mapping)
    # With so few brackets nothing can be nested deeper.
    if text.count("{") + text.count("[") > MAX_RECORD_DEPTH:
        refuse_deep(mapping, memory.id, MAX_RECORD_DEPTH)
    from_image(mapping)
    return mapping, text


MAX_ID_DIGITS = 9
"""Longer ones are a team's: random, not counted up."""


def highest_numbers(memory_ids: Iterable[str]) -> dict[str, int]:
    """The highest number of each day."""
    highest: dict[str, int] = {}
    for memory_id in memory_ids:
        day, _, number = memory_id.rpartition("-")
        if number.isascii() and number.isdigit() and len(number) <= MAX_ID_DIGITS and day.startswith("ENG-"):
            highest[day] = max(highest.get(day, 0), int(number))
    return highest


ANSWERING_STATUSES: tuple[Status, ...] = ("active", "dormant", "archived")
"""The statuses of memories that answer questions: superseded ones only tell the past, and the others answer nothing."""


def heads_among(memories: Iterable[Memory | None], conflict_key: str, scope: str) -> list[Memory]:
    """The current memories with this conflict key in this scope."""
    return [
        m
        for m in memories
        if m is not None and m.conflict_key == conflict_key and m.scope == scope and m.status in LIVE_STATUSES
    ]


def versions_among(memories: Iterable[Memory], lineage_id: str) -> list[Memory]:
    """The versions of a fact in the order they were true; of a memory given twice, the later counts."""
    newest = {memory.id: memory for memory in memories}
    return sort_versions([m for m in newest.values() if lineage_id and m.lineage == lineage_id])


def sort_versions(versions: Sequence[Memory]) -> list[Memory]:
    """Versions in the order they were true: by their beginnings, but each before the one that superseded it, whatever the clock said."""
    starts = {memory.id: start_of(memory) for memory in versions}
    for memory in sorted(versions, key=lambda m: m.revision, reverse=True):
        starts[memory.id] = min(starts[memory.id], starts.get(memory.superseded_by, starts[memory.id]))
    return sorted(versions, key=lambda m: (starts[m.id], m.revision, m.id))


def start_of(memory: Memory) -> datetime:
    """Since when a memory is true, if known."""
    return memory.valid_from or memory.when or datetime.min.replace(tzinfo=UTC)


def refuse_foreign_ids(store: Store, memories: Sequence[Memory]) -> None:
    """Raise `InvalidInput` where an alias is the id of another memory, for which everybody would take it."""
    aliases = list(dict.fromkeys(alias for memory in memories for alias in memory.aliases))
    known = store.numbers(aliases) if aliases else {}
    for memory in memories if known else ():
        for alias in known.keys() & {*memory.aliases} - {memory.id}:
            other = store.get(alias)
            # Said again, it is that memory.
            if other is not None and not same_text(other.statement, memory.statement):
                raise InvalidInput(f"the alias {alias!r} is the id of another memory; choose another")


def locked_memory(deciding: Transaction, memory_id: str) -> Memory:
    """A memory inside a transaction; raises `NotFound` where it was purged in the meantime."""
    memory = deciding.get(memory_id)
    if memory is None:
        raise NotFound(f"{memory_id} was purged in the meantime")
    return memory


def keep_update_time(memory: Memory, stored: Callable[[str], Memory | None]) -> Memory:
    """The memory as it may be written: if it had begun when it was written last, `updated` still shows that after a clock was set back."""
    since, written = memory.valid_from, memory.updated
    if since is None or written is None or since <= written or (memory.created is not None and since <= memory.created):
        return memory
    before = stored(memory.id)
    if before is None or before.valid_from != since or before.updated is None or before.updated < since:
        return memory
    return memory.replace(updated=before.updated)


ENGRAM_ACTOR = "engram"
"""The actor of what Engram does by itself."""
USE_OPS = frozenset({"use", "rate", "derive"})
"""Operations that count uses, ratings and repetitions."""
_AUTOMATIC_OPS = frozenset({"use", "refresh", "split", "export", "redact_evidence"})
"""Operations that nobody decides: usage and links from use, a longer time to live after a read, a shared file split, a name that an
export gave, evidence that a purge removed."""

ENDED_STATUSES = ("rejected", "retired", "superseded")
"""The statuses of what was taken out of use."""
CREATING_OPS = frozenset({"add", "learn", "import", "edit", "split", "separate", "revise"})
"""Decisions a memory's history can begin with; one that begins with another has been pruned."""
_STATUS_OPS = CREATING_OPS | {"reject", "forget", "distrust", "resolve", "merge", "approve", "undo", "compare"}
"""Decisions that take memories out of use. Others, such as `verify`, find them so."""
_CONTENT_FIELDS = ("statement", "situation", "form", "type", "scope", "rationale", "supersedes", "pinned")


def is_automatic(entry: Image) -> bool:
    """Whether a journal entry follows from use or upkeep, so that `undo` never takes it back.

    A repetition that only counts is automatic; if it changes what the memory is, its source is the actor.
    """
    return entry.op in _AUTOMATIC_OPS or (entry.op == "derive" and entry.actor == ENGRAM_ACTOR)


def status_decision(history: Sequence[Image]) -> Image | None:
    """The entry by which a memory came to have its status; None where that part of its history is gone."""
    for later, earlier in zip(reversed(history), reversed(history[:-1]), strict=False):
        if _status(later) != _status(earlier):
            return later
    known = bool(history) and (history[0].op in _STATUS_OPS or rank_of(history[0].actor) == Rank.PERSON)
    return history[0] if known else None


def is_decided_by_person(history: Sequence[Image]) -> bool:
    """Whether a person gave a memory its status; where nobody knows, it counts as theirs."""
    decided = status_decision(history)
    return decided is None or rank_of(decided.actor) == Rank.PERSON


def first_kept_seq(history: Sequence[Image]) -> int:
    """The number of the entry from which on a history outlasts pruning: of what was taken out of use, who decided that."""
    last = history[-1] if history else None
    if last is None or _status(last) not in ENDED_STATUSES:
        return last.seq if last is not None else 0
    decided = status_decision(history)
    return decided.seq if decided is not None else last.seq


def is_reworded(history: Sequence[Image]) -> bool:
    """Whether anyone but a person has changed what a memory says since it was stored, as far as its history tells."""
    if not history or history[0].op not in CREATING_OPS:
        return True
    for earlier, later in pairwise(history):
        said = [[getattr(image.memory, name, None) for name in _CONTENT_FIELDS] for image in (earlier, later)]
        if said[0] != said[1] and rank_of(later.actor) != Rank.PERSON:
            return True
    return False


def _status(image: Image) -> str:
    return image.memory.status if image.memory is not None else ""
