"""The relation registry: every type of link between memories, as one table."""

from collections.abc import Iterator
from typing import Any

from engram.model.errors import InvalidInput
from engram.model.lazy import lazy_pattern

MIN_WEIGHT, MAX_WEIGHT = 1e-6, 1e6
"""The smallest and largest weight, so that the product of a long path stays finite."""
REVISION_RELATIONS = frozenset({"supersedes", "superseded_by"})
"""Relations that only a revision creates, which keeps lineages consistent."""
REVIEW_RELATIONS = frozenset({"contradicts", "may_supersede"})
"""Relations that make a memory wait for review. A person or their program may set them; agents set them only through
`learn`.
"""
_WORD = lazy_pattern(r"[a-z][a-z0-9_]{0,47}")

_TABLE = (
    "semantic",  # DESIGN §4
    "temporal",
    "causal",
    "co_accessed",
    "entity",
    "related_to",  # spec 2
    "supports",
    "contradicts",
    "depends_on",
    "part_of",
    "derived_from",
    "blocks",
    "implements",
    "mentions",
    "valid_elsewhere",  # written by a review if two memories apply in different situations
    "may_supersede",  # written by the gates about two memories
    "may_repeat",
    "refines",
    "broader",  # PLUR
    "narrower",
)
_REGISTRY: dict[str, None] = dict.fromkeys(_TABLE)


def relation(name: Any) -> str:
    """The name; raises `InvalidInput` for an unknown one."""
    if isinstance(name, str) and name in REVISION_RELATIONS:
        raise InvalidInput(
            f"{name!r} cannot be created directly: use `revise`, which stores the new memory and links both"
        )
    if not is_known(name):
        raise InvalidInput(
            f"unknown relation {name!r}; known: {', '.join(sorted(_REGISTRY))}. "
            "engram.model.relations.register_relation(name) adds one of your own"
        )
    return str(name)


def known_relations() -> Iterator[str]:
    """Every relation, in the order of the table."""
    return iter(_REGISTRY)


def is_known(name: Any) -> bool:
    """Whether the registry has this relation; others from imported files are kept and followed."""
    return isinstance(name, str) and name in _REGISTRY


def register_relation(name: Any) -> None:
    """Register a custom relation for this process: lower-case letters, digits and underscores. Repeating it has no
    effect.
    """
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise InvalidInput(
            f"{name!r} is not a valid relation name; use lower-case letters, digits and _, such as reviewed_by"
        )
    if name in REVISION_RELATIONS:
        relation(name)
    _REGISTRY[name] = None
