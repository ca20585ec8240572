"""Outdated memories: their end dates, and the search that answers if no current memory does."""

from datetime import datetime, tzinfo

from engram.model.hit import Hit, Hits
from engram.model.lazy import replace
from engram.model.memory import Memory
from engram.recall.cutoff import MIN_KNOWN, best_relevance, derive_hits
from engram.recall.query import SearchQuery
from engram.rules.eligibility import eligibility, fresh_since, is_effective, is_stale
from engram.store.protocol import LIVE_STATUSES
from engram.text.display import safe_word
from engram.text.time.zone import local

__all__ = ["combine_with_outdated", "describe_end", "is_unanswered", "may_answer", "outdated_query"]


def is_unanswered(query: SearchQuery, hits: Hits) -> bool:
    """Whether a search for current memories found nothing relevant enough, so that outdated ones may answer."""
    filters = query.filters
    asks_for_current = filters.statuses == LIVE_STATUSES and "memory" in filters.kinds and not filters.as_of
    return asks_for_current and not filters.outside and best_relevance(hits) < MIN_KNOWN


def outdated_query(query: SearchQuery) -> SearchQuery:
    """The search for archived and stale memories that are relevant enough."""
    filters = replace(query.filters, statuses=("archived", *LIVE_STATUSES))
    return replace(query, filters=filters, outdated=True, min_relevance=max(query.min_relevance, MIN_KNOWN))


def combine_with_outdated(query: SearchQuery, hits: Hits, found: Hits, now: datetime, zone: tzinfo) -> Hits:
    """Archived and stale memories of `found`, with their end as a note, then the hits, within the limit."""
    outdated = [
        replace(hit, note=describe_end(hit.memory, now, zone)) for hit in found if hit.memory and may_answer(hit, now)
    ]
    taken = {hit.id for hit in outdated}
    return derive_hits(hits, [*outdated, *(hit for hit in hits if hit.id not in taken)][: query.limit])


def may_answer(hit: Hit, now: datetime) -> bool:
    """Whether a hit is an archived or stale memory. It may still be true, because nothing replaced it and it has no end date."""
    memory = hit.memory
    if memory is None or not is_effective(memory, now):
        return False
    return memory.status == "archived" or (memory.status in LIVE_STATUSES and eligibility(memory, now).state == "stale")


def describe_end(memory: Memory, now: datetime, zone: tzinfo | None) -> str:
    """How a memory stopped being current, and when; "" if it is current."""

    def name_day(moment: datetime | None) -> str:
        return "" if moment is None else f"{local(moment, zone) if zone else moment:%Y-%m-%d}"

    if memory.status in ("superseded", "archived"):
        by = f" by {safe_word(memory.superseded_by)}" if memory.status == "superseded" and memory.superseded_by else ""
        ended = memory.valid_until or memory.updated if memory.status == "superseded" else memory.updated
        return f"{memory.status}{by}{f' on {name_day(ended)}' if ended is not None else ''}"
    if not is_effective(memory, now):
        return f"valid until {name_day(memory.valid_until)}" if memory.valid_until else "not yet valid"
    if is_stale(memory, now):
        return f"last confirmed {name_day(fresh_since(memory))}"
    state = eligibility(memory, now)
    return "" if state.found else state.state
