"""The daily limit of untrusted sources, so that no source floods the review queue (DESIGN §12)."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from engram.rules.sources import rate_limit_key
from engram.store.protocol import Store

STATE = "rates"
"""The state with today's counts by source."""
GATE = "rate"
"""The gate that a decision names when a source is over its limit."""


def rate_problem(store: Store, source: str, now: datetime, most: int) -> str:
    """Why a source may add no more candidates today; "" if it may, and then this one is counted. 0 sets no limit."""
    if not most:
        return ""
    day, name, refused = now.date().isoformat(), rate_limit_key(source), False

    def count(before: Mapping[str, Any]) -> Mapping[str, Any]:
        nonlocal refused
        counts = dict(before.get("counts", {})) if before.get("day") == day else {}
        refused = counts.get(name, 0) >= most
        return before if refused else {"day": day, "counts": {**counts, name: counts.get(name, 0) + 1}}

    store.change_state(STATE, count)
    if not refused:
        return ""
    return f"{source} has added {most} candidates today, its limit (`source_daily_limit`); propose it again tomorrow"
