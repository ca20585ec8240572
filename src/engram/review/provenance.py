"""Where a memory comes from, what it resembles, and why the gates let it through: what a reviewer decides by."""

from collections.abc import Collection, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

from engram.gates.comparison import relation
from engram.gates.neighbourhood import Neighbourhood
from engram.gates.pipeline import GATES
from engram.gates.proposal import GateSettings
from engram.gates.trust import kind_of, tier_of, trust
from engram.model.lazy import dataclass
from engram.model.memory import MAY_REPEAT, Memory
from engram.review.retellings import NumberedRetelling, retellings_of
from engram.rules.scopes import GLOBAL, is_scope_visible
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.store.records import CURRENT_STATUSES
from engram.text.display import cut

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

MAX_QUOTE_CHARS = 600
EXPLICIT_WAYS = ("remember", "learn", "add", "manual")
"""`learned_by` of what somebody asked to store."""


@dataclass(frozen=True, slots=True)
class Quote:
    """The part of a ledger event that a memory was derived from."""

    event: str
    session: str
    role: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class RelatedMemories:
    """The stored memories that surely say the same as another, that probably do, that it contradicts or outdates, and that it would replace by its conflict key."""

    same: tuple[Memory, ...] = ()
    similar: tuple[Memory, ...] = ()
    conflicts: tuple[Memory, ...] = ()
    heads: tuple[Memory, ...] = ()


@dataclass(frozen=True, slots=True)
class Provenance:
    """Everything a reviewer needs to decide about a memory besides its statement."""

    memory: Memory
    kind: str
    tier: int
    quotes: tuple[Quote, ...]
    neighbours: RelatedMemories
    gates: str
    """The gate that decided, and why; those before it had no objection."""
    retellings: tuple[NumberedRetelling, ...] = ()
    """What was said later and taken for the same, in its own words."""


def provenance_of(
    store: Store, memory: Memory, settings: GateSettings, scopes: Collection[str] | None = None
) -> Provenance:
    """The provenance of a memory, for a caller who sees these scopes; of what was purged or pruned, as much as is left."""
    vectors = store.embed([meaning_of(memory)])
    near = neighbours_of(store, memory, vectors[0] if vectors is not None else None, scopes)
    return Provenance(
        memory,
        kind_of(memory),
        tier_of(memory),
        tuple(_quotes(store, memory, scopes)),
        near,
        _storing_reason(store, memory, settings),
        tuple(retellings_of(store, memory, scopes)),
    )


def neighbours_of(
    store: Store, memory: Memory, vector: "Vectors | None", scopes: Collection[str] | None = ()
) -> RelatedMemories:
    """How a stored memory relates to the others of its scope, and to those it is linked to in the scopes that the caller sees."""
    from engram.decisions.known import ExcludingLookup, propose

    known = ExcludingLookup(store, vector, own=memory.id)
    proposal = propose(memory)
    near = Neighbourhood(proposal, known.near(proposal))
    twin, retold = near.duplicate(), near.paraphrase()
    if twin is None and retold is not None and relation(memory.statement, retold.statement).relation == "same":
        twin = retold
    same = {twin.id: twin} if twin is not None else {}
    alike = (retold, *_linked_repeats(store, memory, scopes))
    similar = {one.id: one for one in alike if one is not None and one.id not in same}
    told = same.keys() | similar.keys()
    likely = [conflict.other for conflict in near.conflicts() if conflict.is_likely and conflict.other.id not in told]
    heads = known.heads(memory.conflict_key, memory.scope) if memory.conflict_key else ()
    # What is current weighs more than what waits itself.
    order = sorted(likely, key=lambda other: other.status not in CURRENT_STATUSES)
    replaced = tuple(head for head in heads if head.id != memory.id)
    return RelatedMemories(tuple(same.values()), tuple(similar.values()), tuple(order), replaced)


def _linked_repeats(store: Store, memory: Memory, scopes: Collection[str] | None) -> Iterator[Memory]:
    """The live memories that this one probably repeats, or that probably repeat it."""
    from engram.decisions.known import COMPARED_STATUSES

    ids = [link.target for link in memory.associations if link.type == MAY_REPEAT]
    if memory.id:
        ids += (source for source, _, kind, _ in store.links_to([memory.id]) if kind == MAY_REPEAT)
    for other in map(store.get, dict.fromkeys(ids)):
        if other is None or other.status not in COMPARED_STATUSES:
            continue
        if other.scope in (memory.scope, GLOBAL) or is_scope_visible(scopes, other.scope):
            yield other


def _quotes(store: Store, memory: Memory, scopes: Collection[str] | None) -> Iterator[Quote]:
    for evidence in memory.evidence:
        if evidence.retelling is not None:
            continue
        event = store.event(evidence.event)
        if event is not None and (scopes is None or store.owner_of(event.id) in scopes):
            text = event.content[slice(*evidence.span)] if evidence.span is not None else event.content
            yield Quote(event.id, event.session, event.role, event.at, cut(text, MAX_QUOTE_CHARS))


def _storing_reason(store: Store, memory: Memory, settings: GateSettings) -> str:
    """The journal's reason for storing a memory, in words."""
    history = store.history(memory.id)
    if not history:
        return ""
    first = history[0]
    gate, _, other = first.reason.partition(": ")
    if gate not in GATES:
        return f"{first.op} by {first.actor or 'unknown'}{f': {first.reason}' if first.reason else ''}"
    why = trust(memory, memory.learned_by not in EXPLICIT_WAYS, settings).reason if gate == "trust" else other
    return f"every gate before “{gate}” let it pass; {gate}{f': {why}' if why else ''}"
