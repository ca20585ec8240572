"""The relation registry: every word by which one memory may be linked to another, as one table."""

import re
from collections.abc import Iterator
from typing import Any

from engram.model.errors import InvalidInput

LIGHTEST, HEAVIEST = 1e-6, 1e6
"""The least and the most a relation may weigh: the product of a long path still is a number."""
BY_REVISION = frozenset({"supersedes", "superseded_by"})
"""What only a revision may say: lineages would otherwise part from the memories they are about."""
_WORD = re.compile(r"[a-z][a-z0-9_]{0,47}")

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
    "valid_elsewhere",  # what review writes where two memories hold in different situations
    "broader",  # PLUR
    "narrower",
)
_REGISTRY: dict[str, None] = dict.fromkeys(_TABLE)


def relation(name: Any) -> str:
    """The name, if it is known; `InvalidInput` names the known ones, and says how to register one."""
    if isinstance(name, str) and name in BY_REVISION:
        raise InvalidInput(
            f"{name!r} is not a relation to be made: use `revise`, which makes the new memory and links both in one step"
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
    """Whether the registry has this word; files written elsewhere may carry others, which are kept and followed."""
    return isinstance(name, str) and name in _REGISTRY


def register_relation(name: Any) -> None:
    """Add a relation of your own, for this process: small letters, digits and underscores. A second time is harmless."""
    if not isinstance(name, str) or not _WORD.fullmatch(name):
        raise InvalidInput(f"{name!r} is no name for a relation; use small letters, digits and _, such as reviewed_by")
    if name in BY_REVISION:
        relation(name)
    _REGISTRY[name] = None
