"""What may be asked of the graph: every value checked, with a message that says what to do."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from math import isfinite
from typing import Any

from engram.model.arguments import ANY, checked_statuses, refuse_deep, words
from engram.model.errors import InvalidInput
from engram.model.relations import HEAVIEST, LIGHTEST, relation
from engram.rules.scopes import parse_scope
from engram.store.protocol import LIVE, Filters
from engram.store.traversal import Hops

DIRECTIONS = ("outbound", "inbound", "any")
LARGEST_METADATA = 16_384
"""Characters of JSON that a relation may carry."""


def checked_weight(weight: Any) -> float:
    """A weight that a path can be reckoned with."""
    if not _is_number(weight) or not LIGHTEST <= weight <= HEAVIEST:
        raise InvalidInput(f"weight {weight!r} must be a number above 0, from {LIGHTEST:g} to {HEAVIEST:g}; 1 is usual")
    return float(weight)


def checked_metadata(metadata: Any) -> dict[str, Any]:
    """The metadata as JSON-safe data, with text for keys."""
    if metadata is None:
        return {}
    if not isinstance(metadata, Mapping) or not all(isinstance(key, str) for key in metadata):
        raise InvalidInput("metadata of a relation is a mapping with text for keys")
    refuse_deep(metadata, "metadata of a relation")
    try:
        text = json.dumps(dict(metadata), ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"metadata of a relation must be JSON-safe: {error}") from None
    if len(text) > LARGEST_METADATA:
        raise InvalidInput(f"metadata of a relation may have {LARGEST_METADATA} characters as JSON, not {len(text)}")
    found: dict[str, Any] = json.loads(text)
    return found


def hops(
    direction: str,
    types: str | Sequence[str] | None,
    min_weight: float,
    status: str | Sequence[str] | None,
    scope: str | Sequence[str] | None,
    now: datetime,
) -> Hops:
    """Which links to follow, and to which memories."""
    if direction not in DIRECTIONS:
        raise InvalidInput(f"{direction!r} is not a direction; choose {', '.join(DIRECTIONS)}")
    if not _is_number(min_weight) or not 0 <= min_weight <= HEAVIEST:
        raise InvalidInput(f"min_weight {min_weight!r} must be a number from 0 to {HEAVIEST:g}")
    statuses = _statuses(status)
    filters = Filters(
        statuses=statuses,
        scopes=None if scope is None else tuple(parse_scope(one) for one in words(scope, "scope") or ()),
        valid_at=now if statuses == LIVE else None,
    )
    followed = words(types, "types")
    return Hops(direction, followed and tuple(map(relation, followed)), float(min_weight), filters, now)


def _statuses(status: str | Sequence[str] | None) -> tuple[str, ...] | None:
    if status is None:
        return LIVE
    found = checked_statuses(status)
    return None if found is None or ANY in found else found


def _is_number(value: Any) -> bool:
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    return isinstance(value, int) or isfinite(value)
