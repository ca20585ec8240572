"""Facts of a document's chunks by a language model: it can only add to what the rules saw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engram.capture.admission import admit
from engram.capture.documents.facts import LONGEST
from engram.capture.documents.quotes import quote_hash
from engram.capture.documents.source import Chunks, StatedFact, is_harmless
from engram.capture.extraction import Extracted
from engram.capture.model_review import FROM_THE_MODEL, read_facts
from engram.model.errors import ModelError, ModelNonsense, Refused
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.memory import Evidence, Memory

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class ModelFacts:
    """What the model found, and what went wrong in words."""

    facts: list[StatedFact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def facts_by_model(
    model: "LanguageModel", chunks: Chunks, known: Sequence[StatedFact], most: int, progress: Progress
) -> ModelFacts:
    """At most `most` facts of each chunk beyond those the rules took, each quoting words that stand there.

    An answer that cannot be used costs its chunk only. A model that is out of reach, or has spent its day's tokens, is
    asked no further: the next chunk would wait as long for the same.
    """
    asked, useless, invented = ModelFacts(), 0, 0
    taken: dict[str, list[StatedFact]] = {}
    for fact in known:
        taken.setdefault(fact.evidence.event, []).append(fact)
    for place, (_, event) in enumerate(chunks):
        try:
            found = read_facts(model, [event], _extracted(taken.get(event.id, ())), frozenset({DOCUMENT_ROLE}))
        except ModelNonsense:
            useless += 1
            continue
        except ModelError as error:
            asked.warnings.append(
                f"the model was not asked about {len(chunks) - place} of {len(chunks)} chunks ({error}); what the rules see of "
                "them is kept. Record the document again to ask it about all"
            )
            break
        asked.facts += [_stated(event, fact) for fact in found.facts if _is_fit(event, fact)][:most]
        invented += sum("nobody said" in why for _, why in found.refused)
        progress("model", place + 1, len(chunks))
    if useless:
        asked.warnings.append(f"the model's answers about {useless} of {len(chunks)} chunks could not be used")
    if invented:
        asked.warnings.append(f"facts of the model that quote words which do not stand there were refused: {invented}")
    return asked


def _extracted(facts: Sequence[StatedFact]) -> list[Extracted]:
    return [
        Extracted(fact.statement, "semantic", 1.0, DOCUMENT_ROLE, 0, fact.evidence.span, "rules")
        for fact in facts
        if fact.evidence.span is not None
    ]


def _is_fit(event: Event, fact: Extracted) -> bool:
    start, end = fact.span
    is_redacted = bool(event.payload.get("redacted")) and "[redacted:" in event.content[start:end]
    return not is_redacted and is_harmless(fact.statement) and _is_admitted(fact.statement)


def _is_admitted(statement: str) -> bool:
    """Whether it may be a memory at all, and no longer than a fact by rule: a model is not bound to be brief."""
    if len(statement) > LONGEST:
        return False
    try:
        admit(Memory("", statement))
    except Refused:
        return False
    return True


def _stated(event: Event, fact: Extracted) -> StatedFact:
    quote = event.content[slice(*fact.span)]
    evidence = Evidence(event.id, fact.span, quote_hash(quote))
    return StatedFact(fact.statement, evidence, str(event.payload["heading"]), FROM_THE_MODEL)
