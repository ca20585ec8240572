"""Whether a record from elsewhere says what we have, and what of it to take over where it does not."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from engram.capture.import_decisions import IMPORT
from engram.dialects.engram_yaml import to_mapping
from engram.model.lazy import fields
from engram.model.memory import Memory
from engram.store.protocol import Image


def says_the_same(theirs: Memory, ours: Memory) -> bool:
    """Whether two records say the same, apart from what this store adds and what use and links do."""
    return _comparable_fields(
        theirs.replace(status=ours.status) if ours.status == "candidate" else theirs
    ) == _comparable_fields(ours)


def _comparable_fields(memory: Memory) -> dict[str, Any]:
    blank = Memory(id="", statement="")
    return to_mapping(
        memory.replace(
            id="", name="", aliases=(), source="", learned_by="", imported_at=None, activation=blank.activation, feedback=blank.feedback,
            updated=None, associations=(), supersedes=(), superseded_by="",
        )
    )  # fmt: skip


_NOT_COMPARED = frozenset({"id", "name", "aliases", "version", "updated", "associations", "imported_at"})
_COMPARED = tuple(field.name for field in fields(Memory) if field.name not in _NOT_COMPARED)
_OF_USE = frozenset({"activation"})
"""What each program learns from its own use; that both changed it is no conflict."""


def has_same_fields(theirs: Memory, ours: Memory) -> bool:
    """Whether there is nothing to merge: every field of two memories is the same, links included."""
    return all(getattr(theirs, name) == getattr(ours, name) for name in (*_COMPARED, "associations"))


def missing_links(theirs: Memory, ours: Memory, before: Sequence[Memory] = ()) -> Memory:
    """Our memory with the links of theirs that it lacks, apart from those that an earlier version of ours had."""
    versions = (ours, *before)
    linked = {(link.target, link.type) for version in versions for link in version.associations}
    replaced = {earlier for version in versions for earlier in version.supersedes}
    was_superseded = any(version.superseded_by for version in versions)
    return ours.replace(
        associations=(
            *ours.associations,
            *(link for link in theirs.associations if (link.target, link.type) not in linked),
        ),
        supersedes=(*ours.supersedes, *(earlier for earlier in theirs.supersedes if earlier not in replaced)),
        superseded_by=ours.superseded_by if was_superseded else theirs.superseded_by,
    )


def merge_by_field(theirs: Memory, ours: Memory, history: Sequence[Image]) -> tuple[Memory, list[str]]:
    """Our memory with what changed in theirs since it was imported, and the fields that both changed, of which ours stays.

    The journal tells the two apart: what an import wrote is what the other store said; what another decision changed is ours.
    """
    before = _changed_here(history)
    adopted: dict[str, Any] = {}
    conflicts: list[str] = []
    for name in _COMPARED:
        value = getattr(theirs, name)
        if value == getattr(ours, name):
            continue
        if name not in before:
            adopted[name] = value
        elif value != before[name] and name not in _OF_USE:
            conflicts.append(name)
    links = theirs.associations
    if "associations" in before:  # links were made, reinforced or removed here: ours, and those of theirs that are new
        known = {(link.target, link.type) for image in history if image.memory for link in image.memory.associations}
        links = (*ours.associations, *(link for link in links if (link.target, link.type) not in known))
    return ours.replace(**adopted, associations=links), conflicts


def _changed_here(images: Sequence[Image]) -> Mapping[str, Any]:
    """The fields that somebody changed here, each with the value it had before."""
    changed: dict[str, Any] = {}
    for earlier, later in pairwise(images):
        if later.op != IMPORT:
            for name in (*_COMPARED, "associations"):
                value = getattr(earlier.memory, name)
                if value != getattr(later.memory, name):
                    changed.setdefault(name, value)
    return changed
