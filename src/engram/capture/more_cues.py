"""The cues of a statement that is stored again: the stored memory gets them, too."""

from collections.abc import Callable, Sequence
from datetime import datetime

from engram.model.errors import Refused
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
        if not self.store.owned([known.id]):
            return known
        try:
            with self.store.deciding(
                "update", actor=actor, reason="more cues", session=session, about=[known.id]
            ) as deciding:
                found = deciding.get(known.id)
                if found is None or (more := add_cues(found.cues, cues)) == found.cues:
                    return found or known
                after = found.but(cues=more, updated=self.clock())
                deciding.put(after)
        except Refused:
            return known
        return after
