"""Stages one fact of a transcript: as a candidate, as further evidence of one that waits, or not at all, always with the reason."""

from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from engram.capture.conversation import Observe
from engram.capture.draft import draft
from engram.capture.exchange import FactDecision, decision_of, exchange_of
from engram.capture.extraction import FORGET, Extracted
from engram.capture.known import StoreKnown, propose
from engram.capture.learn import Learner
from engram.capture.repetition import Repetition, is_untouched, retell, told_before
from engram.capture.settlement import LEARNED_BY, Revise, Settlement
from engram.capture.transcripts.transcript import Transcript, TranscriptTurn
from engram.gates.pipeline import judge, mention
from engram.gates.proposal import Verdict
from engram.model.decision import Decision, Outcome
from engram.model.errors import Refused
from engram.model.event import Event
from engram.model.lazy import dataclass, replace
from engram.model.memory import Evidence, Memory
from engram.rules.scopes import GLOBAL
from engram.store.documents import meaning_of
from engram.store.protocol import Store
from engram.text.content_hash import quote_hash

if TYPE_CHECKING:
    from engram.embedding.protocol import Vectors

_PEOPLE = frozenset(("user", "person"))
_NOTHING_FORGOTTEN = "nothing was forgotten: a transcript asks for nothing today; use `engram forget`"


@dataclass(frozen=True, slots=True)
class FactOrigin:
    """Where the facts of a transcript come from, and where they belong."""

    source: str
    transcript: Transcript
    project_scope: str
    ledger_scope: str

    def scope_of(self, fact: Extracted) -> str:
        """What is about a person holds everywhere, what is about the project in the project."""
        return GLOBAL if fact.owner in _PEOPLE else self.project_scope


@dataclass(frozen=True, slots=True)
class FactStage:
    """Decides about facts one by one; in a dry run it only says what it would decide."""

    store: Store
    learner: Learner
    clock: Callable[[], datetime]
    observe: Observe
    revise: Revise | None
    dry_run: bool

    def stage(self, turn: TranscriptTurn, fact: Extracted, origin: FactOrigin) -> FactDecision:
        """Stage a fact. Its turn goes to the ledger only if the fact is proposed, or is evidence of one that is."""
        if fact.operation == FORGET:
            return FactDecision(fact.statement, "FORGET", False, f"{fact.reason}; {_NOTHING_FORGOTTEN}")
        try:
            return self._staged(turn, fact, origin)
        except Refused as error:
            return FactDecision(fact.statement, "NOOP", False, f"{fact.reason}; {error}", outcome=Outcome.REJECTED)

    def _staged(self, turn: TranscriptTurn, fact: Extracted, origin: FactOrigin) -> FactDecision:
        memory = self._drafted(turn, fact, origin)
        vectors = self.store.embed([meaning_of(memory)])
        vector = vectors[0] if vectors is not None else None
        with self.store.reading():
            verdict = judge(propose(memory), StoreKnown(self.store, vector), self.learner.settings)
            known = self._told_before(memory, verdict, vector, origin)
        if verdict.outcome == Outcome.REJECTED:
            if not self.dry_run:
                self.store.note_verdict(verdict.gate, verdict.outcome, self.clock())
            return _decision(fact, verdict)
        if known is not None:
            if not self.dry_run and is_untouched(self.store, known.memory):
                event = self._stored(turn, origin)[0]
                evidence = tuple(replace(one, event=event.id) for one in memory.evidence)
                retell(self.store, known, memory.but(evidence=evidence), vector, self.clock())
            return _repeated(fact, known, verdict)
        return _decision(fact, verdict) if self.dry_run else self._settled(turn, fact, origin)

    def _told_before(
        self, memory: Memory, verdict: Verdict, vector: "Vectors | None", origin: FactOrigin
    ) -> Repetition | None:
        """The memory that the fact tells again; of those that a person has decided about, only one that says the same."""
        if verdict.outcome == Outcome.DUPLICATE and verdict.other is not None:
            return Repetition(verdict.other, is_same=True)
        found = told_before(self.store, memory, (memory.scope, origin.project_scope, GLOBAL), vector)
        return found if found is not None and (found.is_same or is_untouched(self.store, found.memory)) else None

    def _settled(self, turn: TranscriptTurn, fact: Extracted, origin: FactOrigin) -> FactDecision:
        """Store the turn, and what follows from its fact."""
        settlement = Settlement(self.store, self.learner, self.clock, self.revise, autonomous=False)
        events = self._stored(turn, origin)
        session, scope = origin.transcript.session, origin.scope_of(fact)
        exchange = exchange_of(events, scope, session, origin.source, with_assistant=False)
        settlement.settle(exchange, fact, None, {})
        return exchange.result.decisions[-1]

    def _stored(self, turn: TranscriptTurn, origin: FactOrigin) -> list[Event]:
        """The turn as an event of the session's ledger. Raises `Refused` if the ledger belongs to somebody else."""
        try:
            return self._observed(turn, turn.key, origin)
        except Refused:
            # A transcript that was rewritten may give the key of one turn to another.
            return self._observed(turn, f"{turn.key}/{quote_hash(turn.content)[:16]}", origin)

    def _observed(self, turn: TranscriptTurn, key: str, origin: FactOrigin) -> list[Event]:
        transcript = origin.transcript
        about = {"harness": transcript.harness, "path": transcript.path}
        item = {"role": "user", "content": turn.content, "at": turn.at, "key": key, "metadata": about}
        return self.observe(transcript.session, [item], scope=origin.ledger_scope)

    def _drafted(self, turn: TranscriptTurn, fact: Extracted, origin: FactOrigin) -> Memory:
        """The memory that a fact would become; its evidence names no event yet."""
        quote = turn.content[slice(*fact.span)]
        given = {
            "statement": fact.statement, "type": fact.type, "scope": origin.scope_of(fact), "confidence": fact.confidence,
            "context": quote, "session": origin.transcript.session, "valid_from": fact.since or turn.at,
            "evidence": [Evidence("", fact.span, quote_hash(quote))],
        }  # fmt: skip
        return draft(given, learned_by=LEARNED_BY, source=origin.source, now=self.clock())


def _decision(fact: Extracted, verdict: Verdict) -> FactDecision:
    return decision_of(fact, Decision(verdict.outcome, None, verdict.other, verdict.reason, verdict.gate))[0]


def _repeated(fact: Extracted, known: Repetition, verdict: Verdict) -> FactDecision:
    if verdict.outcome == Outcome.DUPLICATE:
        reason, gate = verdict.reason, verdict.gate
    elif known.is_same:
        reason, gate = f"says again, in other words, what {mention(known.memory)} says", "retold"
    else:
        reason, gate = f"is about the same as {mention(known.memory)}, which keeps the newer words", "retold"
    return decision_of(fact, Decision(Outcome.DUPLICATE, known.memory, known.memory, reason, gate))[0]
