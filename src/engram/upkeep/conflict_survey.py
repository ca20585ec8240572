"""Pairs of current memories that seem to disagree, found by comparing each memory once with its nearest neighbours.

The state of the store keeps which memories were compared, as an interval of their last changes, and the pairs found. A run compares what
has changed since, oldest first, and what an import brought in with an older date, and then what no run has reached yet, newest first.
"""

import time
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from engram.model.errors import StoreError
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.store.protocol import Store
from engram.store.records import CURRENT_STATUSES
from engram.text.display import format_count

if TYPE_CHECKING:
    from engram.gates.proposal import Conflict, Neighbour

SURVEY_STATE = "doctor"
"""The name of the state: the interval, and the pairs by id."""
MAX_PAIRS = 200
"""Pairs that are listed: somebody has to read them. With so many open, a run compares no further."""

Changed = tuple[float, str]
"""When a memory was changed last, and its id: the order in which memories are compared."""


@dataclass(slots=True)
class Survey:
    """The pairs known to disagree, the newer first, and how much was compared."""

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
    """Compares memories with their neighbours, and remembers how far it came."""

    store: Store

    def run(
        self,
        changes: Iterable[Changed],
        until: float,
        timer: Callable[[], float] = time.monotonic,
        *,
        complete: bool = True,
    ) -> Survey:
        """Compare what was not compared yet until the time is over, at least one memory.

        `changes` names the current memories; unless they are `complete`, how far this run came is not kept.
        """
        order = sorted(changes)
        state = self._state()
        low, high = _interval(state)
        later = order[bisect_right(order, high) :] if high else []
        earlier = order[: bisect_left(order, low)][::-1] if low else order[::-1]
        numbers = self.store.numbers([memory_id for _, memory_id in order])
        brought = _late_arrivals(order[len(earlier) : len(order) - len(later)] if low else [], numbers, state)
        survey = Survey([pair for pair in _pairs(state) if self._is_open(pair)])
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
        if complete and (survey.memories or len(survey.pairs) != len(_pairs(state))):
            mark = state.get("number") if survey.memories < len(brought) else max(numbers.values(), default=0)
            self._keep(survey, low, high, mark)
        return survey

    def _state(self) -> Mapping[str, Any]:
        try:
            return self.store.state(SURVEY_STATE)
        except StoreError:
            return {}  # only how far earlier runs came

    def _keep(self, survey: Survey, low: Changed | None, high: Changed | None, mark: Any) -> None:
        made: dict[str, Any] = {"pairs": [list(pair) for pair in survey.pairs], "number": mark}
        if low is not None and high is not None:
            made |= {"from": list(low), "through": list(high)}
        # A store that cannot be written, or is busy, is compared again next time.
        with suppress(StoreError):
            self.store.change_state(SURVEY_STATE, lambda _: made)

    def _compare(self, change: Changed, survey: Survey, *, with_later: bool) -> int:
        """Compare a memory with its neighbours that were changed before it, or with all of them; returns how many."""
        memory = self.store.get(change[1])
        if memory is None or memory.status not in CURRENT_STATUSES:
            return 0
        near = [one for one in self._find_neighbours(memory) if with_later or change_of(one.memory) < change]
        for conflict in _find_conflicts(memory, near):
            pair = (memory.id, conflict.other.id)
            if self._is_open(pair) and pair[::-1] not in survey.pairs:
                survey.pairs.append(pair)
        return len(near)

    def _find_neighbours(self, memory: Memory) -> "Sequence[Neighbour]":
        from engram.decisions.known import ExcludingLookup, propose

        numbers = list(self.store.numbers([memory.id]).values())
        vectors = self.store.vectors(numbers) if numbers else None
        vector = vectors[0] if vectors is not None else None
        return ExcludingLookup(self.store, vector, CURRENT_STATUSES, own=memory.id).near(propose(memory))

    def _is_open(self, pair: tuple[str, str]) -> bool:
        """Whether both are current and nobody has said how they relate: a link between them counts as settled."""
        found = [self.store.get(memory_id) for memory_id in pair]
        both = [memory for memory in found if memory is not None and memory.status in CURRENT_STATUSES]
        return len(both) == 2 and not any(
            link.target in pair and link.type not in _BY_USE for memory in both for link in memory.associations
        )


_BY_USE = frozenset(("co_accessed", "semantic", "temporal", "entity"))
"""Links that are made by use or by likeness, not by somebody's word."""


def _find_conflicts(memory: Memory, near: "Sequence[Neighbour]") -> "list[Conflict]":
    from engram.gates.neighbourhood import Neighbourhood
    from engram.gates.proposal import Proposal
    from engram.text.tokens import tokens

    proposal = Proposal(memory, False, "", tuple(tokens(memory.statement)))
    return [one for one in Neighbourhood(proposal, near).conflicts() if one.is_sure or one.is_likely] if near else []


def change_of(memory: Memory) -> Changed:
    """When a memory was changed last, and its id."""
    changed = memory.updated or memory.created
    return (changed.timestamp() if changed is not None else 0.0, memory.id)


def _late_arrivals(inside: Sequence[Changed], numbers: Mapping[str, int], state: Mapping[str, Any]) -> list[Changed]:
    """Of the memories in the compared interval, those that came into the store after it was compared, such as an import's."""
    mark = state.get("number")
    return [change for change in inside if numbers.get(change[1], 0) > mark] if isinstance(mark, int) else []


def _interval(state: Mapping[str, Any]) -> tuple[Changed | None, Changed | None]:
    ends = [state.get(name) for name in ("from", "through")]
    low, high = [(float(end[0]), str(end[1])) if isinstance(end, list) and len(end) == 2 else None for end in ends]
    return (low, high) if low is not None and high is not None else (None, None)


def _pairs(state: Mapping[str, Any]) -> list[tuple[str, str]]:
    listed = state.get("pairs")
    found = [one for one in listed if isinstance(one, list) and len(one) == 2] if isinstance(listed, list) else []
    return [(str(newer), str(older)) for newer, older in found]
