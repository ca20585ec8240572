"""Memories as agents see them: the fields they need, as data that nothing stored can break out of."""

import json
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, Field

from engram.model.decision import Related
from engram.rules.scopes import GLOBAL
from engram.rules.sources import may_replace, origin_of
from engram.text.display import make_inert, notice, quote_text, safe_word

if TYPE_CHECKING:
    from engram.model.hit import Hit, Injected
    from engram.model.memory import Memory
    from engram.model.timeline import TimelineEntry
    from engram.recall.context import ContextSection


def _inert(value: Any) -> Any:
    return make_inert(value) if isinstance(value, str) else value


Text = Annotated[str, BeforeValidator(_inert)]
"""Stored text as a value, made inert: clients pass the data to their model too."""


class Card(BaseModel):
    """The fields of a memory that an agent needs."""

    id: Text
    statement: Text
    type: Text
    scope: Text
    status: Text = Field(description="active, or candidate: waiting for a person; retired: forgotten; …")
    source: Text = Field(description="Who said it: human, agent, import:…")
    confidence: float
    created: datetime | None

    @classmethod
    def of(cls, memory: "Memory") -> Self:
        """The card of a memory."""
        return cls.model_validate(memory, from_attributes=True)


class RelatedCard(BaseModel):
    """A stored memory that a new one may outdate or contradict."""

    memory: Card
    relation: Text = Field(description="update or contradiction.")
    probability: float
    reason: Text
    call: Text = Field(description="What to do if the new one replaces it.")

    @classmethod
    def of(cls, related: Related, statement: str, scope: str) -> Self:
        """A related memory of a decision."""
        placed = f", scope={json.dumps(scope)}" if scope != GLOBAL else ""
        call = f"learn(statement={json.dumps(statement, ensure_ascii=False)}, {related.call}{placed})"
        if not may_replace("agent", related.memory):
            call = f"ask the user to run `engram review`: {origin_of(related.memory)} said it"
        return cls(
            memory=Card.of(related.memory),
            relation=related.relation,
            probability=round(related.probability, 3),
            reason=related.reason,
            call=call,
        )

    def as_text(self) -> str:
        """The memory, why it is related, and what to call."""
        why = f"{self.relation}, {self.probability:.0%}" + (f", {notice(self.reason)}" if self.reason else "")
        return f"- [{safe_word(self.memory.id)}] {quote_text(self.memory.statement)} ({why}): {notice(self.call)}"


class Remembered(Card):
    """A memory that answers a question."""

    score: float
    relevance: float = Field(description="How likely it is about the question, 0 to 1.")
    note: Text = Field(description="A caveat, such as archived or disputed.")

    @classmethod
    def hit(cls, hit: "Hit", memory: "Memory") -> Self:
        """A hit of a search."""
        return cls(**Card.of(memory).model_dump(), score=hit.score, relevance=hit.relevance, note=hit.note)


class MemoryCard(BaseModel):
    """A memory chosen for a task, and why."""

    id: Text
    type: Text
    statement: Text
    reason: Text

    @classmethod
    def of(cls, item: "Injected") -> Self:
        """One injected memory."""
        memory = item.memory
        return cls(id=memory.id, type=memory.type, statement=memory.statement, reason=item.reason)


class PassageCard(BaseModel):
    """Something that was found, and where."""

    phase: Text = Field(description="memories, auto memory, sessions, skills or instructions.")
    provenance: Text
    text: Text

    @classmethod
    def of(cls, section: "ContextSection") -> Self:
        """The card of a section."""
        return cls.model_validate(section, from_attributes=True)


class MomentCard(BaseModel):
    """One entry of a timeline."""

    at: datetime
    kind: Text
    id: Text
    text: Text
    status: Text
    note: Text

    @classmethod
    def of(cls, entry: "TimelineEntry") -> Self:
        """The card of an entry."""
        return cls.model_validate(entry, from_attributes=True)

    def as_text(self) -> str:
        """The entry as one line."""
        remarks = "; ".join(notice(part) for part in (self.status, self.note) if part)
        return f"{self.at:%Y-%m-%d %H:%M} {self.kind} [{safe_word(self.id)}] {quote_text(self.text)}" + (
            f" ({remarks})" if remarks else ""
        )
