"""The doctor's findings about memories: stale, doubtful, unverified and conflicting ones."""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from engram.decisions.versions import contradiction_target, update_target
from engram.model.errors import StoreError
from engram.model.lazy import dataclass, field
from engram.model.memory import CONTRADICTS, LIVE_STATUSES, MAY_SUPERSEDE, Memory
from engram.model.report import Finding
from engram.rules.lifecycle import is_effective, is_stale
from engram.rules.sources import is_evidence
from engram.store.protocol import Filters, Store
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.gates.proposal import Conflict, Neighbour

SURVEY_STATE = "doctor"
"""The name of the state that keeps the compared interval, and the pairs by id."""
MAX_PAIRS = 200
"""Maximum pairs listed, since somebody has to read them. Once this many are open, a run compares no further."""

Changed = tuple[float, str]
"""When a memory was last changed, and its id: the order in which memories are compared."""


@dataclass(slots=True)
class Survey:
    """The pairs that contradict each other, the newer memory first, and how much was compared."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    compared: int = 0
    """Pairs compared in this run."""
    memories: int = 0
    """Memories compared with their neighbours in this run."""
    left: int = 0
    """Memories that no run has compared yet."""

    @property
    def extent(self) -> str:
        """How much was compared, in words."""
        memories = format_count(self.memories, "memory with its neighbours", "memories with their neighbours")
        done = f"compared {memories} ({format_count(self.compared, 'pair')})"
        if not self.left:
            return done
        left = format_count(self.left, "memory is still to be compared", "memories are still to be compared")
        return f"{done}; {left}: run it again, or with more --seconds"


@dataclass(slots=True)
class ConflictSurvey:
    """Compares memories with their neighbours, and remembers its progress.

    The store's state keeps the compared memories, as an interval of their last changes, and the pairs found. A run
    first compares changed memories, oldest first, then imported ones with an older date, then those that no run has
    reached yet, newest first.
    """

    store: Store

    def run(
        self,
        changes: Iterable[Changed],
        until: float,
        timer: Callable[[], float] = time.monotonic,
        *,
        complete: bool = True,
    ) -> Survey:
        """Compare memories that were not compared yet until the time is up, but at least one.

        `changes` names the current memories; unless they are `complete`, the progress of this run is not saved.
        """
        order = sorted(changes)
        state = self._state()
        low, high = _interval(state)
        later = order[bisect_right(order, high) :] if high else []
        earlier = order[: bisect_left(order, low)][::-1] if low else order[::-1]
        numbers = self.store.numbers([memory_id for _, memory_id in order])
        brought = _late_arrivals(order[len(earlier) : len(order) - len(later)] if low else [], numbers, state)
        survey = Survey([pair for pair in _conflicting_pairs(state) if self._is_open(pair)])
        fresh = {*later, *brought}
        for number, change in enumerate([*brought, *later, *earlier]):
            if (number and timer() >= until) or len(survey.pairs) >= MAX_PAIRS:
                break
            if change in fresh:
                survey.pairs = [pair for pair in survey.pairs if change[1] not in pair]
            survey.compared += self._compare(change, survey, with_later=number < len(brought))
            survey.memories += 1
            if number >= len(brought):
                low, high = min(low or change, change), max(high or change, change)
        survey.left = len(brought) + len(later) + len(earlier) - survey.memories
        if complete and (survey.memories or len(survey.pairs) != len(_conflicting_pairs(state))):
            mark = state.get("number") if survey.memories < len(brought) else max(numbers.values(), default=0)
            self._keep(survey, low, high, mark)
        return survey

    def _state(self) -> Mapping[str, Any]:
        try:
            return self.store.state(SURVEY_STATE)
        except StoreError:
            return {}  # Only the progress of earlier runs.

    def _keep(self, survey: Survey, low: Changed | None, high: Changed | None, mark: Any) -> None:
        made: dict[str, Any] = {"pairs": [list(pair) for pair in survey.pairs], "number": mark}
        if low is not None and high is not None:
            made |= {"from": list(low), "through": list(high)}
        # If the store is busy or cannot be written, the next run compares these again.
        with suppress(StoreError):
            self.store.change_state(SURVEY_STATE, lambda _: made)

    def _compare(self, change: Changed, survey: Survey, *, with_later: bool) -> int:
        """Compare a memory with its neighbours that were changed before it, or with all of them; returns how many."""
        memory = self.store.get(change[1])
        if memory is None or memory.status not in LIVE_STATUSES:
            return 0
        near = [one for one in self._find_neighbours(memory) if with_later or change_of(one.memory) < change]
        for conflict in _find_conflicts(memory, near):
            pair = (memory.id, conflict.other.id)
            if self._is_open(pair) and pair[::-1] not in survey.pairs:
                survey.pairs.append(pair)
        return len(near)

    def _find_neighbours(self, memory: Memory) -> "Sequence[Neighbour]":
        from engram.decisions.admission import ExcludingLookup, propose

        numbers = list(self.store.numbers([memory.id]).values())
        vectors = self.store.vectors(numbers) if numbers else None
        vector = vectors[0] if vectors is not None else None
        return ExcludingLookup(self.store, vector, LIVE_STATUSES, own=memory.id).near(propose(memory))

    def _is_open(self, pair: tuple[str, str]) -> bool:
        """Whether both are current and nobody has decided how they relate; a link between them counts as a decision."""
        found = [self.store.get(memory_id) for memory_id in pair]
        both = [memory for memory in found if memory is not None and memory.status in LIVE_STATUSES]
        return len(both) == 2 and not any(
            link.target in pair and link.type not in _BY_USE for memory in both for link in memory.associations
        )


_BY_USE = frozenset(("co_accessed", "semantic", "temporal", "entity"))
"""Link types that are created by use or similarity, not by a decision."""


def _find_conflicts(memory: Memory, near: "Sequence[Neighbour]") -> "list[Conflict]":
    from engram.gates.neighbourhood import Neighbourhood
    from engram.gates.proposal import Proposal
    from engram.text.tokens import tokens

    proposal = Proposal(memory, False, "", tuple(tokens(memory.statement)))
    return [one for one in Neighbourhood(proposal, near).conflicts() if one.is_sure or one.is_likely] if near else []


def change_of(memory: Memory) -> Changed:
    """When a memory was last changed, and its id."""
    changed = memory.updated or memory.created
    return (changed.timestamp() if changed is not None else 0.0, memory.id)


def _late_arrivals(inside: Sequence[Changed], numbers: Mapping[str, int], state: Mapping[str, Any]) -> list[Changed]:
    """The memories in the compared interval that were added after it was compared, for example by an import."""
    mark = state.get("number")
    return [change for change in inside if numbers.get(change[1], 0) > mark] if isinstance(mark, int) else []


def _interval(state: Mapping[str, Any]) -> tuple[Changed | None, Changed | None]:
    ends = [state.get(name) for name in ("from", "through")]
    low, high = [(float(end[0]), str(end[1])) if isinstance(end, list) and len(end) == 2 else None for end in ends]
    return (low, high) if low is not None and high is not None else (None, None)


def _conflicting_pairs(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    listed = state.get("pairs")
    found = [one for one in listed if isinstance(one, list) and len(one) == 2] if isinstance(listed, list) else []
    return [(str(newer), str(older)) for newer, older in found]


LOW_CONFIDENCE = 0.5
UNSEEN_BY_PEOPLE = ("harvest", "import")
"""`learned_by` values of memories that nobody has checked until they are verified."""
READING_SHARE = 0.8
"""The largest share of the time used for reading. The rest is for comparing pairs."""
MEMORIES_PER_PAGE = 2000
MAX_EXAMPLES = 5
MAX_LISTED_IDS = 100
"""Maximum ids that a finding lists for programs."""


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
    """The results of one pass over the current memories."""

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
        """How many memories were read, if not all."""
        return "" if self.is_complete else f" (checked {self.read:,} of {self.total:,}; --seconds N takes longer)"


def memory_findings(
    store: Store, now: datetime, seconds: float, timer: Callable[[], float] = time.monotonic
) -> list[Finding]:
    """Findings about stale, doubtful, unverified and conflicting memories, within about `seconds` seconds.

    Reading a large store takes a while, so each check has a time limit and reports how much it has read. Pairs are
    never compared all with all: each memory is compared once with its nearest neighbours, newest first, and the next
    run continues.
    """
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
    census = _MemoryCensus(store.count(Filters(statuses=LIVE_STATUSES)))
    for page in _pages(store, LIVE_STATUSES, until, timer):
        for memory in page:
            census.add(memory, now)
    census.total = max(census.total, census.read)
    return census


def _pages(store: Store, statuses: Sequence[str], until: float, timer: Callable[[], float]) -> Iterator[list[Memory]]:
    """Read memories in pages, newest first, until the time is up; at least one page."""
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
