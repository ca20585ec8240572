"""Stages one fact of a transcript: as a candidate, as a repetition of a waiting one, or not at all; always with the reason.
A fact that only probably repeats a memory is linked to it, and a person merges the two or keeps both.
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from math import inf, nan
from typing import TYPE_CHECKING

from engram.agents.transcripts.session import Transcript, TranscriptTurn
from engram.capture.conversation import Observe
from engram.capture.exchange import Exchange, FactDecision, decision_of, exchange_of
from engram.capture.extraction import FORGET, ExtractedFact
from engram.capture.learn import Learner
from engram.capture.settlement import Revise, Settlement
from engram.decisions.admission import MAX_NEIGHBOURS, StoreLookup, propose
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.embedding.vectors import dot
from engram.gates.comparison import relation
from engram.gates.pipeline import mention
from engram.gates.proposal import Neighbour, Verdict
from engram.model.decision import Decision, Outcome
from engram.model.errors import Refused
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import MAY_REPEAT, Association, Memory
from engram.model.records import Event
from engram.review.amendment import store_retelling
from engram.rules.scopes import GLOBAL
from engram.rules.sources import Rank, rank_of
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.text.content_hash import quote_hash, same_text
from engram.text.statements import normalize_statement
from engram.text.tokens import split_sentences

if TYPE_CHECKING:
    from engram.embedding.vectors import Vectors
    from engram.models.pairs import Relation

MIN_RELATED_COSINE = 0.4
"""The minimum cosine of two statements that are probably about the same thing."""
MIN_SENTENCE_COSINE = 0.55
"""The minimum cosine of remarks if only some of their sentences are similar."""
MIN_DIFFERENT_PROBABILITY = 0.5
"""The probability of "different" from which two statements are about different things."""
_FEWEST_WORDS = 4


@dataclass(frozen=True, slots=True)
class Repetition:
    """A memory that a new statement repeats, or probably repeats."""

    memory: Memory
    is_same: bool
    """Whether it means the same, and may be added to a candidate that shows it."""
    is_sure: bool = False
    """Whether that is certain, so that nothing is lost if the statement is not stored."""


def find_repetition(
    store: Store, memory: Memory, scopes: Sequence[str], vector: "Vectors | None", others: Sequence[Neighbour] = ()
) -> Repetition | None:
    """The live memory that a statement repeats, in these scopes or among `others`; None if the statement is different or opposite.

    People state the same rule to their agents repeatedly. A repetition of a waiting candidate is added to it as a
    retelling, in its own words, so that a reviewer sees it and can separate it (`engram.review.amendment`). A probable
    repetition is proposed by itself and linked to the older memory, so that a person merges the two or keeps both. No
    words are ever replaced.
    """
    from engram.models.pairs import relate_all
    from engram.models.paraphrases import SAME_LOG_ODDS, SURELY_SAME_LOG_ODDS

    near = [
        found
        for scope in dict.fromkeys(scopes)
        for found in StoreLookup(store, vector).near(propose(memory.replace(scope=scope)))
    ]
    near += sorted(others, key=lambda one: -one.cosine)[:MAX_NEIGHBOURS]
    new, texts = memory.statement, [found.memory.statement for found in near]
    cosines = [found.cosine if found.cosine >= 0 else nan for found in near]
    best, order = None, (True, 1.0)
    relations = relate_all(texts, new, cosines) if near else []
    scores = _scores([(old, new) for old in texts], cosines, relations)
    for found, compared, score in zip(near, relations, scores, strict=True):
        old = found.memory.statement
        if relation(new, old).relation == "opposite":
            continue
        if score < SAME_LOG_ODDS and found.cosine >= MIN_RELATED_COSINE and _is_covered(store, new, old):
            score = SAME_LOG_ODDS
        is_same = score >= SAME_LOG_ODDS
        different = _difference(compared, found.cosine, new, old)
        place = (not is_same, -score if is_same else different)
        if (
            is_same or (found.cosine >= MIN_RELATED_COSINE and different < MIN_DIFFERENT_PROBABILITY)
        ) and place < order:
            best, order = Repetition(found.memory, is_same, score >= SURELY_SAME_LOG_ODDS), place
    return best


def _scores(pairs: Sequence[tuple[str, str]], cosines: Sequence[float], relations: "Sequence[Relation]") -> list[float]:
    """Log odds that the newer statement of each pair repeats the older: infinite for equal texts, minus infinity for other numbers."""
    from engram.models.paraphrases import likeness

    return [
        inf if same_text(old, new) else -inf if _has_other_numbers(old, new) else score
        for (old, new), score in zip(pairs, likeness(pairs, cosines, relations), strict=True)
    ]


def _has_other_numbers(old: str, new: str) -> bool:
    before, after = set(normalize_statement(old).numbers), set(normalize_statement(new).numbers)
    return bool(before - after and after - before)


def _is_covered(store: Store, new: str, old: str) -> bool:
    """Whether each sentence of a statement repeats a sentence of an older, longer one."""
    from engram.models.pairs import relate_pairs
    from engram.models.paraphrases import SAME_LOG_ODDS

    told, known = split_sentences(new), split_sentences(old)
    if len(known) < 2 or len(told) > len(known):
        return False
    vectors = store.embed([*told, *known])
    if vectors is None:
        return False
    places = [(one, other) for other in range(len(told)) for one in range(len(known))]
    cosines = [float(dot(vectors[len(told) + one], vectors[other])) for one, other in places]
    pairs = [(known[one], told[other]) for one, other in places]
    scores = _scores(pairs, cosines, relate_pairs(pairs))
    same = {
        other
        for (one, other), score in zip(places, scores, strict=True)
        if score >= SAME_LOG_ODDS and relation(told[other], known[one]).relation != "opposite"
    }
    return len(same) == len(told)


def _difference(compared: "Relation", cosine: float, new: str, old: str) -> float:
    """How different two remarks are; for close ones, their most similar sentences count, because the model was trained on single ones."""
    from engram.models.pairs import relate_pairs

    if cosine < MIN_SENTENCE_COSINE or compared.different < MIN_DIFFERENT_PROBABILITY:
        return compared.different
    pairs = [(one, other) for one in _sentences(old) for other in _sentences(new)]
    return min((found.different for found in relate_pairs(pairs)), default=1.0)


def _sentences(statement: str) -> list[str]:
    return [sentence for sentence in split_sentences(statement) if len(sentence.split()) >= _FEWEST_WORDS]


def add_evidence(store: Store, known: Memory, new: Memory, now: datetime) -> bool:
    """Add a repetition to a candidate, whose wording stays: its evidence, and its own words if they differ.

    Returns whether the evidence is stored; False if somebody has decided about the memory or changed it in the
    meantime.
    """
    if not same_text(known.statement, new.statement):
        new = new.replace(evidence=tuple(store_retelling(store, known, new, one) for one in new.evidence))

    def plan(memories: LockedMemories) -> bool:
        found = memories.get(known.id)
        if found is None or found.status != "candidate" or found.statement != known.statement:
            return False
        stored = {(one.event, one.span) for one in found.evidence}
        if added := [one for one in new.evidence if (one.event, one.span) not in stored]:
            memories.put(found.replace(evidence=(*found.evidence, *added), updated=now))
        return True

    change = Change(
        op="retell", actor=new.source, plan=plan, note=f"told again in {new.session}", session=new.session,
        scopes=[known.scope], related=[known.id],
    )  # fmt: skip
    return execute_change(store, lambda: now, change)


def is_untouched(store: Store, memory: Memory) -> bool:
    """Whether a memory is a candidate that only transcripts have contributed to."""
    if memory.status != "candidate" or rank_of(memory.source) > Rank.HARVEST:
        return False
    return all(rank_of(image.actor) <= Rank.HARVEST or image.actor == "engram" for image in store.history(memory.id))


_PEOPLE = frozenset(("user", "person"))
_NOTHING_FORGOTTEN = (
    "nothing was forgotten: a request in an old transcript is not carried out; use `engram forget` if you still want it"
)
_RETOLD = "retold"
"""The gate named by a decision about a repetition."""


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """The origin of a transcript's facts, and the scopes they belong to."""

    source: str
    transcript: Transcript
    project_scope: str
    ledger_scope: str

    def scope_of(self, fact: ExtractedFact) -> str:
        """The scope of a fact: facts about a person apply everywhere, facts about the project in the project."""
        return GLOBAL if fact.owner in _PEOPLE else self.project_scope


@dataclass(slots=True)
class DryRun:
    """The proposals of a dry run so far, so that it finds the same repetitions as a harvest."""

    proposed: "list[tuple[Memory, Vectors | None]]" = field(default_factory=list)

    def near(self, scopes: tuple[str, ...], vector: "Vectors | None") -> list[Neighbour]:
        """The proposals of these scopes, with their cosines."""
        return [
            Neighbour(memory, float(dot(known, vector)) if known is not None and vector is not None else -1.0)
            for memory, known in self.proposed
            if memory.scope in scopes
        ]


@dataclass(frozen=True, slots=True)
class FactStage:
    """Decides about facts one by one; in a dry run, it writes nothing and only reports its decisions."""

    store: Store
    learner: Learner
    clock: Callable[[], datetime]
    observe: Observe
    revise: Revise | None
    rehearsal: DryRun | None = None

    def stage(self, turn: TranscriptTurn, fact: ExtractedFact, origin: FactOrigin) -> FactDecision:
        """Stage a fact. Its turn is stored in the ledger only if the fact is proposed, or is evidence for a proposed one."""
        if fact.operation == FORGET:
            return FactDecision(
                fact=fact.statement, operation="FORGET", applied=False, reason=f"{fact.reason}; {_NOTHING_FORGOTTEN}"
            )
        try:
            return self._decide_fact(turn, fact, origin)
        except Refused as error:
            return FactDecision(
                fact=fact.statement,
                operation="NOOP",
                applied=False,
                reason=f"{fact.reason}; {error}",
                outcome=Outcome.REJECTED,
            )

    def _decide_fact(self, turn: TranscriptTurn, fact: ExtractedFact, origin: FactOrigin) -> FactDecision:
        settlement = Settlement(self.store, self.learner, self.clock, self.revise, autonomous=False)
        exchange = self._exchange([_unsaved_event(turn, origin)], fact, origin)
        memory = settlement.proposal(exchange, fact).memory
        vectors = self.store.embed([meaning_of(memory)])
        vector = vectors[0] if vectors is not None else None
        with self.store.reading():
            verdict = settlement.verdict(exchange, fact, StoreLookup(self.store, vector))
            known = self._find_repetition(memory, verdict, vector, origin)
        if verdict.outcome == Outcome.REJECTED:
            return _decision(fact, verdict)
        if known is not None and known.is_same and self._merge_into_known(turn, fact, origin, known):
            return _duplicate_decision(fact, known.memory, verdict)
        if self.rehearsal is None:
            return self._store_fact(settlement, turn, fact, origin, known)
        self.rehearsal.proposed.append((memory, vector))
        return _note_repetition(_decision(fact, verdict), known, is_active=verdict.status == "active" and known is None)

    def _find_repetition(
        self, memory: Memory, verdict: Verdict, vector: "Vectors | None", origin: FactOrigin
    ) -> Repetition | None:
        """The memory that the fact repeats, certainly or probably; None if the gates found that it contradicts that memory."""
        if verdict.outcome == Outcome.DUPLICATE and verdict.other is not None:
            return Repetition(verdict.other, is_same=True, is_sure=True)
        scopes = (memory.scope, origin.project_scope, GLOBAL)
        others = self.rehearsal.near(scopes, vector) if self.rehearsal is not None else []
        found = find_repetition(self.store, memory, scopes, vector, others)
        if found is None or found.is_sure:
            return found
        is_contradicted = verdict.outcome == Outcome.CONTRADICTION and verdict.other == found.memory
        return None if is_contradicted else found

    def _merge_into_known(
        self, turn: TranscriptTurn, fact: ExtractedFact, origin: FactOrigin, known: Repetition
    ) -> bool:
        """Whether a fact needs no memory of its own: it was added to a candidate as a retelling, or certainly adds nothing."""
        if self.rehearsal is not None and not known.memory.id:
            return True
        if not is_untouched(self.store, known.memory):
            return known.is_sure
        if self.rehearsal is not None:
            return True
        settlement = Settlement(self.store, self.learner, self.clock, self.revise, autonomous=False)
        exchange = self._exchange(self._record_turn(turn, origin), fact, origin)
        told = settlement.proposal(exchange, fact).memory
        return add_evidence(self.store, known.memory, told, self.clock()) or known.is_sure

    def _store_fact(
        self,
        settlement: Settlement,
        turn: TranscriptTurn,
        fact: ExtractedFact,
        origin: FactOrigin,
        known: Repetition | None,
    ) -> FactDecision:
        """Store the turn, and settle its fact."""
        exchange = self._exchange(self._record_turn(turn, origin), fact, origin)
        if known is not None:
            # A person decides whether it is a repetition, even if harvested facts are promoted at once.
            fact = fact if fact.operation else replace(fact, tentative=True)
            link = Association(known.memory.id, MAY_REPEAT, 0.5, last_reinforced=self.clock())
            settlement = replace(settlement, links=[link])
        settlement.settle(exchange, fact, None, {})
        return _note_repetition(exchange.result.decisions[-1], known)

    def _exchange(self, events: list[Event], fact: ExtractedFact, origin: FactOrigin) -> Exchange:
        session, scope = origin.transcript.session, origin.scope_of(fact)
        return exchange_of(events, scope, session, origin.source, with_assistant=False)

    def _record_turn(self, turn: TranscriptTurn, origin: FactOrigin) -> list[Event]:
        """The turn as an event of the session's ledger. Raises `Refused` if the ledger belongs to somebody else."""
        try:
            return self._observe_turn(turn, turn.key, origin)
        except Refused:
            # A rewritten transcript may give the key of one turn to another.
            return self._observe_turn(turn, f"{turn.key}/{quote_hash(turn.content)[:16]}", origin)

    def _observe_turn(self, turn: TranscriptTurn, key: str, origin: FactOrigin) -> list[Event]:
        transcript = origin.transcript
        about = {"harness": transcript.harness, "path": transcript.path}
        item = {"role": "user", "content": turn.content, "at": turn.at, "key": key, "metadata": about}
        return self.observe(transcript.session, [item], scope=origin.ledger_scope)


def _unsaved_event(turn: TranscriptTurn, origin: FactOrigin) -> Event:
    """The turn as an event that is not in the ledger yet, and may never be."""
    assert turn.at is not None
    return Event("", origin.transcript.session, 0, "user", turn.content, turn.at)


def _decision(fact: ExtractedFact, verdict: Verdict) -> FactDecision:
    return decision_of(
        fact,
        Decision(outcome=verdict.outcome, memory=None, other=verdict.other, reason=verdict.reason, gate=verdict.gate),
    )[0]


def _note_repetition(decision: FactDecision, known: Repetition | None, *, is_active: bool = False) -> FactDecision:
    """The decision with the memory it probably repeats, and whether the fact would be active at once."""
    if known is None:
        return replace(decision, applied=decision.applied or is_active)
    return replace(decision, reason=f"{decision.reason}; probably says again what {mention(known.memory)} says")


def _duplicate_decision(fact: ExtractedFact, known: Memory, verdict: Verdict) -> FactDecision:
    reason, gate = verdict.reason, verdict.gate
    if verdict.outcome != Outcome.DUPLICATE:
        reason, gate = f"says again, in other words, what {mention(known)} says", _RETOLD
    return decision_of(fact, Decision(outcome=Outcome.DUPLICATE, memory=known, other=known, reason=reason, gate=gate))[
        0
    ]
