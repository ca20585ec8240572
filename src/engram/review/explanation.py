"""Explains a memory: its state, versions, decisions, links and evidence."""

from collections.abc import Collection, Sequence
from datetime import datetime

from engram.decisions.versions import with_disputes
from engram.model.lazy import dataclass, replace
from engram.model.memory import CO_ACCESSED, Association, Evidence, Memory
from engram.rules.lifecycle import Eligibility, eligibility, links_at
from engram.rules.scopes import is_scope_visible
from engram.store.protocol import Image, Store
from engram.store.references import hide_foreign_links
from engram.text.display import cut, quote_text, safe_word

MAX_EXPLAINED_CHARS = 500
"""The maximum length of a text shown next to the statement."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Everything known about a memory besides its statement; `text` has it as lines."""

    memory: Memory
    current: Memory
    """The current version of the fact; the memory itself if it is current."""
    state: Eligibility
    """Whether the memory may be found and injected now, and why."""
    versions: tuple[Memory, ...]
    """Every version of the fact, oldest first."""
    decisions: tuple[Image, ...]
    """Every decision about this version, oldest first."""
    links: tuple[Association, ...]
    linked_from: tuple[tuple[str, str], ...]
    """The memories that link to this one, each with the relation."""
    evidence: tuple[Evidence, ...]
    text: str


def build_explanation(
    store: Store,
    memory: Memory,
    versions: Sequence[Memory],
    current: Memory,
    now: datetime,
    scopes: Collection[str] | None = None,
) -> Explanation:
    """The explanation of a memory, for a caller who sees these scopes."""
    memory = with_disputes(store, [memory])[0]
    state = eligibility(memory, now)
    decisions = tuple(visible_images(store, memory.id, scopes))

    def is_visible(memory_id: str) -> bool:
        return scopes is None or store.owner_of(memory_id) in scopes

    links = tuple(link for link in links_at(memory, now) if is_visible(link.target))
    back = tuple(sorted((source, kind) for source, _, kind, _ in store.links_to([memory.id]) if is_visible(source)))
    lines = [
        f"{safe_word(memory.id)} ({safe_word(memory.type)}, {safe_word(memory.scope)}): {quote_text(memory.statement)}",
        f"state: {state.state}, strength {state.strength:.2f}; {state.reason}",
        *_details(memory),
        *_origin(memory),
        *_place(memory, versions, current),
        *(
            f"{image.at:%Y-%m-%d %H:%M} {safe_word(image.op)} by {_or(image.actor, 'unknown')}{_because(image)}"
            for image in decisions
        ),
        *(f"links to {safe_word(link.target)}: {safe_word(link.type)}, {_worth(link)}" for link in links),
        *(f"linked from {safe_word(source)}: {safe_word(kind)}" for source, kind in back),
        *(f"evidence: {safe_word(one.event)}" for one in memory.evidence),
    ]
    return Explanation(
        memory, current, state, tuple(versions), decisions, links, back, memory.evidence, "\n".join(lines)
    )


def visible_images(store: Store, memory_id: str, scopes: Collection[str] | None) -> list[Image]:
    """The entries of a memory's history from when it was in one of these scopes, limited to ids and links the caller may see."""
    images = store.history(memory_id)
    if scopes is None:
        return images
    seen = [image for image in images if image.memory is None or is_scope_visible(scopes, image.memory.scope)]
    owners = {one: store.owner_of(one) or "" for one in dict.fromkeys(i for image in seen for i in image.ids)}
    return [
        replace(
            image,
            ids=tuple(one for one in image.ids if owners[one] in scopes),
            memory=image.memory and hide_foreign_links(store, image.memory, scopes),
        )
        for image in seen
    ]


def _details(memory: Memory) -> list[str]:
    """The memory's other fields as lines; long texts are cut."""
    texts = (("situation", memory.situation), ("rationale", memory.rationale), ("context", memory.context))
    return [
        f"{name} ({len(text):,} characters): {quote_text(cut(text, MAX_EXPLAINED_CHARS))}"
        for name, text in texts
        if text
    ]


def _origin(memory: Memory) -> list[str]:
    came = f"learned by {_or(memory.learned_by, 'unknown means')} from {_or(memory.source, 'unknown')}; {safe_word(memory.verification)}"
    slot = f"critical slot {safe_word(memory.critical_slot)}" if memory.critical_slot else ""
    key = (
        f"conflict key {safe_word(memory.conflict_key)}: a new fact with this key supersedes it"
        if memory.conflict_key
        else ""
    )
    return [line for line in (came, slot, key) if line]


def _place(memory: Memory, versions: Sequence[Memory], current: Memory) -> list[str]:
    if len(versions) < 2:
        return []
    place = next((number for number, one in enumerate(versions, 1) if one.id == memory.id), len(versions))
    version = (
        "this one is current"
        if current.id == memory.id
        else f"{safe_word(current.id)} is current: {quote_text(current.statement)}"
    )
    return [f"version {place} of {len(versions)}; {version}"]


def _worth(link: Association) -> str:
    """The weight given to a link, or the strength it gained by use."""
    return f"strength {link.strength:.2f}" if link.type == CO_ACCESSED else f"weight {link.weight:g}"


def _because(image: Image) -> str:
    return f": {quote_text(image.reason)}" if image.reason else ""


def _or(text: str, unknown: str) -> str:
    return safe_word(text) if text else unknown
