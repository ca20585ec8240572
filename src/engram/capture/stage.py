"""Stages one fact of a transcript: as a candidate, as further evidence of one that waits, or not at all, always with the reason."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from engram.agents.transcripts.transcript import Transcript, TranscriptTurn
from engram.capture.conversation import Observe
from engram.capture.exchange import Exchange, FactDecision, decision_of, exchange_of
from engram.capture.extraction import FORGET, ExtractedFact
from engram.capture.learn import Learner
from engram.capture.repetition import Repetition, add_evidence, find_repetition, is_untouched
from engram.capture.settlement import Revise, Settlement
from engram.decisions.known import StoreLookup
from engram.embedding.products import dot
from engram.gates.pipeline import mention
from engram.gates.proposal import Neighbour, Verdict
from engram.model.decision import Decision, Outcome
from engram.model.errors import Refused
from engram.model.event import Event
from engram.model.lazy import dataclass, field, replace
from engram.model.memory import MAY_REPEAT, Association, Memory
from engram.rules.scopes import GLOBAL
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.text.content_hash import quote_hash

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_PEOPLE = frozenset(("user", "person"))
_NOTHING_FORGOTTEN = (
    "nothing was forgotten: a request in an old transcript is not carried out; use `engram forget` if you still want it"
)
_RETOLD = "retold"
"""The gate that a decision about a repetition names."""


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """Where the facts of a transcript come from, and where they belong."""

    source: str
    transcript: Transcript
    project_scope: str
    ledger_scope: str

    def scope_of(self, fact: ExtractedFact) -> str:
        """What is about a person holds everywhere, what is about the project in the project."""
        return GLOBAL if fact.owner in _PEOPLE else self.project_scope


@dataclass(slots=True)
class DryRun:
    """What a dry run would have proposed so far, so that it finds the repetitions a harvest would."""

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
    """Decides about facts one by one; with a rehearsal it writes nothing and only says what it would decide."""

    store: Store
    learner: Learner
    clock: Callable[[], datetime]
    observe: Observe
    revise: Revise | None
    rehearsal: DryRun | None = None

    def stage(self, turn: TranscriptTurn, fact: ExtractedFact, origin: FactOrigin) -> FactDecision:
        """Stage a fact. Its turn goes to the ledger only if the fact is proposed, or is evidence of one that is."""
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
        """The memory that the fact says again, surely or probably; None for one that the gates found it to contradict."""
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
        """Whether a fact needs no memory of its own: a candidate has it as a further telling, or it surely says nothing new."""
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
        """Store the turn, and what follows from its fact."""
        exchange = self._exchange(self._record_turn(turn, origin), fact, origin)
        if known is not None:
            # A person decides whether it is the same, also where harvested facts are promoted at once.
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
            # A transcript that was rewritten may give the key of one turn to another.
            return self._observe_turn(turn, f"{turn.key}/{quote_hash(turn.content)[:16]}", origin)

    def _observe_turn(self, turn: TranscriptTurn, key: str, origin: FactOrigin) -> list[Event]:
        transcript = origin.transcript
        about = {"harness": transcript.harness, "path": transcript.path}
        item = {"role": "user", "content": turn.content, "at": turn.at, "key": key, "metadata": about}
        return self.observe(transcript.session, [item], scope=origin.ledger_scope)


def _unsaved_event(turn: TranscriptTurn, origin: FactOrigin) -> Event:
    """The turn as an event that is not in the ledger yet, and perhaps never will be."""
    assert turn.at is not None
    return Event("", origin.transcript.session, 0, "user", turn.content, turn.at)


def _decision(fact: ExtractedFact, verdict: Verdict) -> FactDecision:
    return decision_of(
        fact,
        Decision(outcome=verdict.outcome, memory=None, other=verdict.other, reason=verdict.reason, gate=verdict.gate),
    )[0]


def _note_repetition(decision: FactDecision, known: Repetition | None, *, is_active: bool = False) -> FactDecision:
    """The decision with what the fact probably repeats, and whether it would be active at once."""
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
