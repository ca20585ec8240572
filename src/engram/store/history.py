"""Who decided what a memory is, by its history in the journal; and what of a history outlasts pruning."""

from collections.abc import Sequence
from itertools import pairwise

from engram.rules.sources import Rank, rank_of
from engram.store.protocol import Image

__all__ = [
    "CREATING_OPS",
    "ENDED_STATUSES",
    "ENGRAM_ACTOR",
    "USE_OPS",
    "first_kept_seq",
    "is_automatic",
    "is_decided_by_person",
    "is_reworded",
    "status_decision",
]  # fmt: skip

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
