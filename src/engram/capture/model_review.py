"""What a language model adds, in one call: facts that were missed, and a choice for every fact given the stored memories.

Its output is checked: a fact must quote words that were said, and a choice must name a memory that the model was shown.
"""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from engram.capture.extraction import ExtractedFact
from engram.llm.schemas import Choice, ExtractedFacts
from engram.model.lazy import dataclass, field
from engram.model.memory import Memory
from engram.model.records import Event
from engram.text.display import quote_text, safe_word

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

FROM_THE_MODEL = 0.7
"""The confidence of facts found by a model: implied (DESIGN §10)."""
MAX_REVIEWED_FACTS = 40
"""Facts accepted per exchange; a model that finds more is rambling."""
INVENTED_QUOTE = "the model quotes words that nobody said"
"""Why a fact with a quote that does not occur in the turns is refused."""
_OVERLAP = 0.5


@dataclass(slots=True)
class ModelReview:
    """The facts from a model that can be used, those refused with the reason, and its choices for the facts it was shown."""

    facts: list[tuple[ExtractedFact, Choice]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)
    choices: dict[int, Choice] = field(default_factory=dict)
    restated: set[int] = field(default_factory=set)
    """The facts found that were only perhaps worth keeping, and that the model states itself: its statement is kept instead."""


def review(
    model: "LanguageModel",
    events: Sequence[Event],
    found: Sequence[ExtractedFact],
    roles: frozenset[str],
    known: Mapping[str, Memory],
    at: datetime,
) -> ModelReview:
    """The facts a model finds in turns of these roles beyond those found, and a choice for each fact.

    Raises `ModelError`.
    """
    answer = model.ask(
        "facts",
        ExtractedFacts,
        {
            "today": at.date().isoformat(),
            "turns": "\n\n".join(f"{event.role}: {event.content}" for event in events),
            "found": "\n".join(f"{number}: {quote_text(fact.statement)}" for number, fact in enumerate(found)),
            "known": "\n".join(
                f"{safe_word(memory.id)}: {quote_text(memory.statement[:500])}" for memory in known.values()
            ),
        },
    )
    result = ModelReview()
    result.choices = {choice.fact: choice for choice in reversed(answer.choices) if 0 <= choice.fact < len(found)}
    for place, fact in enumerate(answer.facts):
        if place >= MAX_REVIEWED_FACTS:
            result.refused.append(
                (fact.statement, f"the model found more than {MAX_REVIEWED_FACTS} facts in one exchange")
            )
            continue
        where = _where(fact.quote, events)
        problem = _problem(where, events, found, roles)
        if where is None or problem or not fact.statement.strip():
            result.refused.append((fact.statement, problem or "the statement is empty"))
            continue
        turn, span = where
        result.restated |= {at for at, one in enumerate(found) if _is_open(one) and _same_words(one, turn, span)}
        new = ExtractedFact(fact.statement.strip(), fact.type, FROM_THE_MODEL, events[turn].role, turn, span, "model")
        result.facts.append((new, Choice(place, fact.operation, fact.target, fact.reason)))
    return result


def _where(quote: str, events: Sequence[Event]) -> tuple[int, tuple[int, int]] | None:
    """The turn and span of a quote; only spaces and case may differ."""
    words = quote.strip(' \n\t"“”').split()
    if not words:
        return None
    pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
    for turn, event in enumerate(events):
        if found := pattern.search(event.content):
            return turn, found.span()
    return None


def _problem(
    found: tuple[int, tuple[int, int]] | None,
    events: Sequence[Event],
    known: Sequence[ExtractedFact],
    roles: frozenset[str],
) -> str:
    if found is None:
        return INVENTED_QUOTE
    turn, span = found
    if events[turn].role not in roles:
        return f"its quote is from the {events[turn].role}'s turn"
    twin = next((fact for fact in known if not _is_open(fact) and _same_words(fact, turn, span)), None)
    return f"a fact was found in the same words: {twin.statement}" if twin else ""


def _is_open(fact: ExtractedFact) -> bool:
    """Whether a fact is only perhaps worth keeping, so that a model may settle it."""
    return fact.tentative and not fact.operation


def _same_words(fact: ExtractedFact, turn: int, span: tuple[int, int]) -> bool:
    return fact.turn == turn and _span_overlap(fact.span, span) >= _OVERLAP


def _span_overlap(one: tuple[int, int], other: tuple[int, int]) -> float:
    """The share of the shorter of two spans that both have in common."""
    common = min(one[1], other[1]) - max(one[0], other[0])
    return max(0, common) / max(1, min(one[1] - one[0], other[1] - other[0]))
