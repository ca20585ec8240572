"""The doctor's findings about the memories themselves: stale, doubtful, unverified and conflicting ones.

Reading all of a large store takes a while, so each check has a time limit and says how much it has read. Pairs of memories are never
compared all with all: each memory is compared once with its nearest neighbours, newest first, and the next run continues.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime

from engram.decisions.conflicts import update_target
from engram.decisions.versions import contradiction_target
from engram.model.lazy import dataclass, field
from engram.model.memory import CONTRADICTS, MAY_SUPERSEDE, Memory
from engram.model.report import Finding
from engram.rules.eligibility import is_effective, is_stale
from engram.rules.sources import is_evidence
from engram.store.protocol import Filters, Store
from engram.store.records import CURRENT_STATUSES
from engram.text.display import format_count
from engram.upkeep.conflict_survey import Changed, ConflictSurvey, change_of

LOW_CONFIDENCE = 0.5
UNSEEN_BY_PEOPLE = ("harvest", "import")
"""`learned_by` of memories that nobody has looked at until they are verified."""
READING_SHARE = 0.8
"""The share of the time for reading at most; what is left, and no less than the rest of it, is for comparing pairs."""
MEMORIES_PER_PAGE = 2000
MAX_EXAMPLES = 5
MAX_LISTED_IDS = 100
"""The ids a finding lists for programs."""


@dataclass(slots=True)
class _Affected:
    """How many memories a check concerns, and the first of them."""

    count: int = 0
    ids: list[str] = field(default_factory=list)

    def add(self, memory: Memory) -> None:
        self.count += 1
        if len(self.ids) < MAX_LISTED_IDS:
            self.ids.append(memory.id)


@dataclass(slots=True)
class _MemoryCensus:
    """What one pass over the current memories found."""

    total: int = 0
    read: int = 0
    stale: _Affected = field(default_factory=_Affected)
    doubtful: _Affected = field(default_factory=_Affected)
    unverified: _Affected = field(default_factory=_Affected)
    may_supersede: list[Memory] = field(default_factory=list)
    keys: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """The memories of each conflict key in each scope."""
    changes: list[Changed] = field(default_factory=list)

    def add(self, memory: Memory, now: datetime) -> None:
        self.read += 1
        if memory.status == "active":
            self._judge(memory, now)
        if any(link.type == MAY_SUPERSEDE for link in memory.associations):
            self.may_supersede.append(memory)
        if memory.conflict_key and is_effective(memory, now):
            self.keys.setdefault((memory.scope, memory.conflict_key), []).append(memory.id)
        self.changes.append(change_of(memory))

    def _judge(self, memory: Memory, now: datetime) -> None:
        if is_stale(memory, now):
            self.stale.add(memory)
        if memory.confidence < LOW_CONFIDENCE:
            self.doubtful.add(memory)
        if memory.last_verified is None and memory.learned_by in UNSEEN_BY_PEOPLE and is_evidence(memory):
            self.unverified.add(memory)

    @property
    def is_complete(self) -> bool:
        return self.read >= self.total

    @property
    def progress_note(self) -> str:
        """How much was read, where that is not everything."""
        return "" if self.is_complete else f" (checked {self.read:,} of {self.total:,}; --seconds N takes longer)"


def memory_findings(
    store: Store, now: datetime, seconds: float, timer: Callable[[], float] = time.monotonic
) -> list[Finding]:
    """Stale, doubtful, unverified and conflicting memories, found in about so many seconds."""
    end = timer() + seconds
    census = _census(store, now, end - (1 - READING_SHARE) * seconds, timer)
    compare_until = max(end, timer() + (1 - READING_SHARE) * seconds)
    return [
        _finding(
            census, census.stale, "stale", "is past its horizon", "are past their horizon",
            "`engram verify ID` confirms what is still true, `engram forget ID` retires what is not",
        ),
        _finding(
            census, census.doubtful, "confidence", "has a confidence below 0.5", "have a confidence below 0.5",
            "`engram update ID --confidence 0.9` where it is certain, `engram forget ID` where it is wrong",
        ),
        _finding(
            census, census.unverified, "unverified", "comes from a transcript or an import and is unconfirmed",
            "come from transcripts or imports and are unconfirmed",
            "`engram verify ID` confirms one; until then it is evidence and directs no agent",
            none="everything from transcripts and imports is confirmed",
        ),
        _conflicts(store, census, compare_until, timer),
    ]  # fmt: skip


def _census(store: Store, now: datetime, until: float, timer: Callable[[], float]) -> _MemoryCensus:
    census = _MemoryCensus(store.count(Filters(statuses=CURRENT_STATUSES)))
    for page in _pages(store, CURRENT_STATUSES, until, timer):
        for memory in page:
            census.add(memory, now)
    census.total = max(census.total, census.read)
    return census


def _pages(store: Store, statuses: Sequence[str], until: float, timer: Callable[[], float]) -> Iterator[list[Memory]]:
    """Memories, newest first, until the time is over; at least one page."""
    filters, offset = Filters(statuses=tuple(statuses)), 0
    while page := store.listing(filters, MEMORIES_PER_PAGE, offset):
        yield page
        offset += len(page)
        if len(page) < MEMORIES_PER_PAGE or timer() >= until:
            return


def _finding(
    census: _MemoryCensus, found: _Affected, code: str, one: str, many: str, fix: str, none: str = ""
) -> Finding:
    if not found.count:
        return Finding.of(code, True, f"{none or f'no memory {one}'}{census.progress_note}")
    named = _examples(found.ids)
    message = f"1 memory {one}: {named}" if found.count == 1 else f"{found.count:,} memories {many}, such as {named}"
    return Finding(code, "advice", f"{message}{census.progress_note}", fix, found.count, tuple(found.ids))


def _examples(ids: Sequence[str]) -> str:
    return ", ".join(ids[:MAX_EXAMPLES])


# -- conflicts


def _conflicts(store: Store, census: _MemoryCensus, until: float, timer: Callable[[], float]) -> Finding:
    waiting = [memory.id for memory in _contradicting(store, until, timer)]
    waiting += [memory.id for memory in census.may_supersede if update_target(store.get, memory) is not None]
    keyed = [ids for ids in census.keys.values() if len(ids) > 1]
    survey = ConflictSurvey(store).run(census.changes, until, timer, complete=census.is_complete)
    parts, fixes = [], []
    if waiting:
        parts.append(f"{len(waiting):,} open in the review queue, such as {_examples(waiting)}")
        fixes.append("`engram review` settles them")
    if keyed:
        named = ", ".join(" and ".join(ids[:3]) for ids in keyed[:MAX_EXAMPLES])
        parts.append(f"{format_count(len(keyed), 'conflict key')} with more than one current memory: {named}")
        fixes.append("`engram forget ID` retires the outdated one")
    if survey.pairs:
        named = ", ".join(" and ".join(pair) for pair in survey.pairs[:MAX_EXAMPLES])
        parts.append(f"{format_count(len(survey.pairs), 'pair')} that seem to disagree: {named}")
        fixes.append("`engram relate NEWER OLDER --type may_supersede` puts a pair before `engram review`")
    message = "; ".join([*(parts or ["no conflicting pair"]), survey.extent])
    ids = dict.fromkeys([*waiting, *(i for group in (*keyed, *survey.pairs) for i in group)])
    count = len(waiting) + len(keyed) + len(survey.pairs)
    return Finding(
        "conflicts", "advice" if parts else "ok", message, "; ".join(fixes), count, tuple(ids)[:MAX_LISTED_IDS]
    )


def _contradicting(store: Store, until: float, timer: Callable[[], float]) -> Iterator[Memory]:
    """The candidates that contradict a current memory."""
    for page in _pages(store, ("candidate",), until, timer):
        for memory in page:
            linked = any(link.type == CONTRADICTS for link in memory.associations)
            if linked and contradiction_target(store.get, memory) is not None:
                yield memory
