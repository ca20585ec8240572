"""What a new memory repeats or contradicts in the other scopes that its reader sees.

The gates compare within one scope, because a project may do otherwise than everyone else. But an agent in the project reads
both, so they are told.
"""

from datetime import datetime
from typing import TYPE_CHECKING

from engram.decisions.known import StoreLookup
from engram.gates.forms import in_same_form
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import mention
from engram.gates.proposal import Neighbour, Proposal
from engram.model.lazy import replace
from engram.rules.eligibility import is_over
from engram.rules.scopes import visible_scopes
from engram.store.protocol import Filters, Store
from engram.store.records import CURRENT_STATUSES
from engram.text.display import notice, safe_word

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

__all__ = ["has_memories_elsewhere", "other_scopes", "scope_warnings"]

MAX_SCOPE_NEIGHBOURS = 3
"""How many of the nearest memories by meaning, and as many by words, of other scopes a proposal is compared with: half as many as in its own."""
MIN_COMPARED_COSINE = 0.4
"""The cosine from which a memory is compared; the gates compare farther ones too, but here nothing is decided."""


def other_scopes(scope: str, here: str) -> tuple[str, ...]:
    """The other scopes that are seen together with one: from it, and from the project of the directory if that sees it."""
    start = [scope, here] if here and scope in visible_scopes([here]) else [scope]
    return tuple(one for one in visible_scopes(start) if one != scope)


def has_memories_elsewhere(store: Store, scope: str, here: str) -> bool:
    """Whether there is anything current in the other scopes that a new memory of this one is compared with."""
    return bool(store.count(Filters(scopes=other_scopes(scope, here), statuses=CURRENT_STATUSES)))


def _is_near(proposal: Proposal, near: Neighbour) -> bool:
    """Whether a memory is worth comparing: near in meaning, as far as that is known, or in the same form."""
    return not 0 <= near.cosine < MIN_COMPARED_COSINE or in_same_form(proposal.memory, near.memory)


def scope_warnings(
    proposal: Proposal, store: Store, vector: "Vectors | None", here: str, now: datetime
) -> tuple[str, ...]:
    """A warning for each current memory of another scope that a proposal repeats or contradicts."""
    memory, scopes = proposal.memory, other_scopes(proposal.memory.scope, here)
    with store.reading():
        found = StoreLookup(store, vector, CURRENT_STATUSES, scopes, MAX_SCOPE_NEIGHBOURS).near(proposal)
    current = {near.memory.id: near for near in found if _is_near(proposal, near) and not is_over(near.memory, now)}
    # The gates compare within a scope, so these are compared as if they were in the proposal's.
    moved = [replace(near, memory=near.memory.replace(scope=memory.scope)) for near in current.values()]
    near = Neighbourhood(proposal, moved)
    if (twin := near.duplicate()) is not None:
        return (notice(f"{mention(twin)} in {safe_word(current[twin.id].memory.scope)} already says this"),)
    likely = [conflict for conflict in near.conflicts() if conflict.is_likely and conflict.other.id in current]
    return tuple(
        notice(
            f"it {'updates' if conflict.relation == 'update' else 'contradicts'} {mention(conflict.other)} in "
            f"{safe_word(current[conflict.other.id].memory.scope)}, which is seen together with it"
            + (f": {conflict.why}" if conflict.why else "")
            + "; forget or change one of them unless this one is an exception"
        )
        for conflict in likely[:MAX_SCOPE_NEIGHBOURS]
    )
