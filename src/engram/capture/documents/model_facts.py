"""Facts of a document's chunks found by a language model, in addition to those found by rules."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from engram.capture.documents.facts import LONGEST
from engram.capture.documents.source import Chunks, StatedFact, is_harmless
from engram.capture.extraction import Extracted
from engram.capture.model_review import FROM_THE_MODEL, INVENTED_QUOTE, read_facts
from engram.gates.pipeline import admit
from engram.model.errors import ModelError, ModelNonsense, Refused
from engram.model.event import DOCUMENT_ROLE, Event
from engram.model.memory import Evidence, Memory
from engram.text.content_hash import quote_hash

if TYPE_CHECKING:
    from engram.llm.model import LanguageModel

Progress = Callable[[str, int, int], None]


@dataclass(slots=True)
class ModelFacts:
    """The facts that the model found, and warnings about what failed."""

    facts: list[StatedFact] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def facts_by_model(
    model: "LanguageModel", chunks: Chunks, known: Sequence[StatedFact], most: int, progress: Progress
) -> ModelFacts:
    """At most `most` facts per chunk in addition to the known ones, each with a quote that occurs in the chunk.

    An unusable answer affects only its chunk. If the model is unreachable, or its daily token limit is used up, the remaining
    chunks are skipped, because they would fail too.
    """
    result, unusable, invented = ModelFacts(), 0, 0
    taken: dict[str, list[StatedFact]] = {}
    for fact in known:
        taken.setdefault(fact.evidence.event, []).append(fact)
    for place, (_, event) in enumerate(chunks):
        try:
            found = read_facts(model, [event], _extracted(taken.get(event.id, ())), frozenset({DOCUMENT_ROLE}))
        except ModelNonsense:
            unusable += 1
            continue
        except ModelError as error:
            result.warnings.append(
                f"the model did not read {len(chunks) - place} of {len(chunks)} chunks ({error}); their facts by rules were stored. "
                "Ingest the document again to let it read all"
            )
            break
        result.facts += [_stated(event, fact) for fact in found.facts if _is_fit(event, fact)][:most]
        invented += sum(why == INVENTED_QUOTE for _, why in found.refused)
        progress("model", place + 1, len(chunks))
    if unusable:
        result.warnings.append(f"the model's answers about {unusable} of {len(chunks)} chunks could not be used")
    if invented:
        result.warnings.append(
            f"{invented} facts from the model were refused: their quotes do not occur in the document"
        )
    return result


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
    """Whether a statement can be stored and is no longer than a fact found by rules."""
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
