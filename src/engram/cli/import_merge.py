"""A record that was imported before, read again: what changed there is taken over, what was decided here stays.

The journal tells the two apart. What an import wrote is what the other store said; whatever another decision changed since
is ours. Where both changed the same field ours stays, and the other store, which is never written to, keeps its own.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import Any

from engram.model.memory import Association, Memory
from engram.store.protocol import Image

IMPORT = "import"
"""The decision an import is."""
_NOT_COMPARED = frozenset({"id", "name", "aliases", "version", "updated", "associations"})
_COMPARED = tuple(field.name for field in fields(Memory) if field.name not in _NOT_COMPARED)
_OF_USE = frozenset({"activation"})
"""What each program learns from its own use; that both changed it is no contradiction."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The memory as it should be now, and the fields that changed on both sides, of which ours stayed."""

    memory: Memory
    kept: tuple[str, ...] = ()


def was_imported(history: Sequence[Image]) -> bool:
    """Whether the first that is known of a memory is that it was imported; where older images were pruned, nobody knows."""
    return bool(history) and history[0].op == IMPORT


def merged(theirs: Memory, ours: Memory, history: Sequence[Image]) -> Merged:
    """Our memory with what changed in theirs since it was imported."""
    images = [image for image in history if image.memory is not None]
    before = _changed_here(images)
    taken: dict[str, Any] = {}
    kept: list[str] = []
    for name in _COMPARED:
        value = getattr(theirs, name)
        if value == getattr(ours, name):
            continue
        if name not in before:
            taken[name] = value
        elif value != before[name] and name not in _OF_USE:
            kept.append(name)
    links = _links(theirs, ours, images, changed_here="associations" in before)
    if links != ours.associations:
        taken["associations"] = links
    return Merged(ours.but(**taken) if taken else ours, tuple(kept))


def _changed_here(images: Sequence[Image]) -> Mapping[str, Any]:
    """The fields that somebody changed here, each with the value it had before."""
    found: dict[str, Any] = {}
    for earlier, later in pairwise(images):
        if later.op != IMPORT:
            for name in (*_COMPARED, "associations"):
                value = getattr(earlier.memory, name)
                if value != getattr(later.memory, name):
                    found.setdefault(name, value)
    return found


def _links(theirs: Memory, ours: Memory, images: Sequence[Image], *, changed_here: bool) -> tuple[Association, ...]:
    """Their links; where links were made, strengthened or taken away here, ours and those of theirs that are new."""
    if not changed_here:
        return theirs.associations
    known = {_tie(link) for image in images if image.memory is not None for link in image.memory.associations}
    return (*ours.associations, *(link for link in theirs.associations if _tie(link) not in known))


def _tie(link: Association) -> tuple[str, str]:
    return link.target, link.type
