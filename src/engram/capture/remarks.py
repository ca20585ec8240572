"""Remarks: what a turn of a transcript says about one thing, put together from the sentences that say it.

"We don't do down files. Migrations are forward only." is one thing to remember, and one decision for the person who reviews it. A fact with a slot
of its own (a name, a home town), which a later one replaces, stays by itself.
"""

from collections.abc import Callable, Iterator, Sequence

from engram.capture.extraction import REDACTED, ExtractedFact, JudgedSentence
from engram.capture.extraction.clauses import in_third_person, is_remember_request, sentence
from engram.gates.instructions import find_injections
from engram.model.lazy import dataclass, replace
from engram.models.remarks import PROPOSE_PROBABILITY, RemarkCues, probability

MIN_SLOTTED_WORTH = 0.5
"""The probability of being worth keeping from which a fact with a slot of its own is proposed: a rule phrased it."""
MIN_NEIGHBOUR_WORTH = 0.15
"""The probability from which a sentence next to a fact is part of its remark."""
MAX_REMARK_WORDS = 60
"""Words of a remark (spec 1: a statement has 25 to 60)."""


@dataclass(frozen=True, slots=True)
class TranscriptFact:
    """A fact of a transcript, and whether it is proposed."""

    fact: ExtractedFact
    is_likely: bool
    """Whether it is probably worth keeping, its loss could do harm, or the person asked to remember it."""
    probability: float
    """The probability that it is worth keeping."""


def remarks(
    considered: Sequence[JudgedSentence], turns: Sequence[str], project: str, has_slot: Callable[[ExtractedFact], bool]
) -> Iterator[TranscriptFact]:
    """The facts of turns; those of sentences next to each other are put together, unless they have a slot of their own."""
    for run in _runs(considered):
        asked = any(is_remember_request(one.text) for one in run)
        turn = turns[run[0].turn]
        alone = [fact for one in run for fact in one.facts if fact.operation or has_slot(fact)]
        for fact in alone:
            worth = fact.worth or 0
            is_likely = worth >= MIN_SLOTTED_WORTH and not (fact.operation and fact.tentative)
            yield TranscriptFact(fact, asked or is_likely, worth)
        rest = (replace(one, facts=tuple(fact for fact in one.facts if fact not in alone)) for one in run)
        for part in _parts([one for one, before in zip(rest, run, strict=True) if one.facts or not before.facts]):
            if (joined := _join_sentences(part)) is not None:
                is_critical = joined.critical and not joined.tentative
                likelihood = probability(cues_of(joined, turn, project))
                yield TranscriptFact(joined, asked or is_critical or likelihood >= PROPOSE_PROBABILITY, likelihood)


def plain_facts(considered: Sequence[JudgedSentence]) -> Iterator[TranscriptFact]:
    """The facts of turns as they were said, one by one; of those that are only perhaps worth keeping, what was asked to be remembered."""
    for one in considered:
        asked = is_remember_request(one.text)
        yield from (TranscriptFact(fact, asked or not fact.tentative, fact.worth or 0) for fact in one.facts)


def cues_of(fact: ExtractedFact, turn: str, project: str) -> RemarkCues:
    """What the model of remarks reads of a fact."""
    said = turn[slice(*fact.span)]
    return RemarkCues(
        fact.worth or 0, fact.statement, said, turn, project, fact.type, fact.owner, fact.is_ruled, fact.tentative
    )


def _runs(considered: Sequence[JudgedSentence]) -> Iterator[list[JudgedSentence]]:
    """Sentences of one turn that follow each other, each a fact or close to one."""
    run: list[JudgedSentence] = []
    for one in considered:
        belongs = bool(one.facts) or _is_neighbour(one)
        if run and (one.turn != run[-1].turn or not belongs):
            yield run
            run = []
        if belongs:
            run.append(one)
    if run:
        yield run


def _is_neighbour(one: JudgedSentence) -> bool:
    """Whether a sentence that states no fact may belong to one next to it: no question, no order to the reader, no secret."""
    if (one.worth or 0) < MIN_NEIGHBOUR_WORTH or one.text.rstrip().endswith("?"):
        return False
    return REDACTED not in one.text and not find_injections(one.text)


def _parts(run: Sequence[JudgedSentence]) -> Iterator[list[JudgedSentence]]:
    """The run, cut where a remark would be too long."""
    part: list[JudgedSentence] = []
    words = 0
    for one in run:
        length = len(one.text.split())
        if part and words + length > MAX_REMARK_WORDS:
            yield part
            part, words = [], 0
        part.append(one)
        words += length
    if part:
        yield part


def _join_sentences(part: Sequence[JudgedSentence]) -> ExtractedFact | None:
    """One fact of all sentences; None if none of them states one. The likeliest says what kind of fact it is."""
    facts = [fact for one in part for fact in one.facts]
    if not facts:
        return None
    best = max(facts, key=lambda fact: fact.worth or 0)
    if len(part) == 1 and len(facts) == 1:
        return best
    statement = " ".join(_restate(one) for one in part)
    span = (min(one.span[0] for one in part), max(one.span[1] for one in part))
    return replace(
        best,
        statement=statement,
        span=span,
        tentative=all(fact.tentative for fact in facts),
        critical=any(fact.critical for fact in facts),
        context="",
        is_ruled=any(fact.is_ruled for fact in facts),
    )


def _restate(one: JudgedSentence) -> str:
    if one.facts:
        return " ".join(fact.statement for fact in one.facts)
    return sentence(in_third_person(one.text))
