"""The cues of a statement that is stored again: the stored memory gets them, too."""

from collections.abc import Callable, Sequence
from datetime import datetime

from engram.decisions.change import Change
from engram.decisions.execution import execute_change
from engram.decisions.locked import LockedMemories
from engram.model.errors import NotFound, Refused
from engram.model.lazy import dataclass
from engram.model.memory import Memory
from engram.rules.cues import add_cues
from engram.rules.sources import may_decide
from engram.store.protocol import Store

__all__ = ["CueAdder"]


@dataclass(frozen=True, slots=True)
class CueAdder:
    """Adds cues to stored memories, each time as a decision of its own that `undo` takes back."""

    store: Store
    clock: Callable[[], datetime]

    def add(self, known: Memory, cues: Sequence[str], actor: str, session: str = "") -> Memory:
        """The memory with these cues after its own; as it is where the actor may not change it, or no more fit."""
        if add_cues(known.cues, cues) == known.cues or not may_decide(actor, known):
            return known
        # A team's file changes only by a change that somebody asks for.
        if not self.store.own_ids([known.id]):
            return known

        def plan(memories: LockedMemories) -> Memory:
            (found,) = memories.targets
            if (more := add_cues(found.cues, cues)) == found.cues:
                return found
            after = found.replace(cues=more, updated=memories.now)
            memories.put(after)
            return after

        change = Change(op="update", actor=actor, plan=plan, note="more cues", session=session, targets=[known.id])
        try:
            return execute_change(self.store, self.clock, change)
        except (NotFound, Refused):
            return known
