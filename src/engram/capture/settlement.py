"""Settles the facts of an exchange: each is stored, replaces, ends or removes a stored memory, or waits for a person."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol, Unpack

from engram.capture.draft import draft
from engram.capture.exchange import ASSISTANT, WRITTEN, Exchange, FactDecision, decision_of
from engram.capture.extraction import END, FORGET, ExtractedFact
from engram.capture.learn import Learner
from engram.capture.retraction import (
    Remark,
    Retraction,
    asks_to_forget,
    find_ended,
    find_forgotten,
    reason_to_wait,
    was_said_before,
)
from engram.decisions.admission import ChangesLookup, propose
from engram.gates.comparison import relation
from engram.gates.nature import nature_of
from engram.gates.pipeline import judge
from engram.gates.proposal import Lookup, Proposal, Verdict
from engram.gates.trust import is_human, tier_3_reason
from engram.llm.schemas import Choice
from engram.model.arguments import QUOTED_EVENT, VERBATIM
from engram.model.decision import Decision, Outcome
from engram.model.errors import Refused
from engram.model.lazy import dataclass, replace
from engram.model.memory import LIVE_STATUSES, Association, ChangedFields, Evidence, Memory
from engram.model.records import Event, quotes_ledger
from engram.model.types import memory_type
from engram.rules.scopes import visible_scopes
from engram.rules.sources import CAPTURED, may_replace
from engram.store.intake import NewEvent
from engram.store.protocol import COMPARED_STATUSES, Store
from engram.store.records import start_of
from engram.text.content_hash import quote_hash

PLAIN_FACT = "fact"
TRANSCRIPT = "harvest"
"""The source of tentative facts, which become candidates like other transcript facts."""
TEMPORARY_DAYS = 30
"""The decay horizon of temporary facts."""
ALWAYS_REVIEWED = ("identity", "fiscal")
"""Types whose facts always wait for review: numbers of documents, accounts and taxes."""
CATEGORIES = ("relationship", "constraint")
"""Categories of statements about the user that an agent could not store without review."""
QUOTED_TYPES = ("decision", "correction", "principle", "commitment")
QUOTED_FROM = 0.8
"""Types whose exact words are kept as an artifact, and the confidence from which they are (spec 5)."""
_CORRECTED = re.compile(r",? (?:and )?not [^,;]{1,60}(?=\.$)")


class Revise(Protocol):
    """Creates a new version of a memory: `Lineages.revise`."""

    def __call__(self, ref: str, *, actor: str, reason: str, **fields: Unpack[ChangedFields]) -> Memory:
        """The new version."""


@dataclass(slots=True)
class Settlement:
    """Carries out the decision about a fact, and reports it in the exchange."""

    store: Store
    learner: Learner
    clock: Callable[[], datetime]
    revise: Revise | None
    autonomous: bool
    links: Sequence[Association] = ()
    """Links to add to the stored memories."""

    def settle(
        self, exchange: Exchange, fact: ExtractedFact, choice: Choice | None, known: Mapping[str, Memory]
    ) -> None:
        """Decide about a fact and carry out the decision, which names the words it is about."""
        decisions = exchange.result.decisions
        first = len(decisions)
        self._decide(exchange, fact, choice, known)
        said = exchange.events[fact.turn].content[slice(*fact.span)]
        decisions[first:] = [replace(decision, said=said) for decision in decisions[first:]]

    def verdict(self, exchange: Exchange, fact: ExtractedFact, known: Lookup) -> Verdict:
        """The gates' verdict on a fact, before anything is stored. Raises `PatternTimeout`."""
        return judge(self.proposal(exchange, fact), known, self._learner_of(fact).settings)

    def proposal(self, exchange: Exchange, fact: ExtractedFact) -> Proposal:
        """The proposal for a fact. Raises `PatternTimeout`."""
        given, source = self._memory_fields(exchange, fact), self._source_of(exchange, fact)
        drafted = draft(given, learned_by=CAPTURED, source=source, now=self.clock())
        memory = self.learner.policy.apply(drafted, typed=True)
        memory = memory.replace(memory_kind=nature_of(memory.statement, memory.type, memory.tags))
        return replace(propose(memory, autonomous=self.autonomous), is_typed=fact.type in ALWAYS_REVIEWED)

    def _decide(
        self, exchange: Exchange, fact: ExtractedFact, choice: Choice | None, known: Mapping[str, Memory]
    ) -> None:
        note = ""
        if fact.operation or self._asks_to_forget(exchange, fact):
            self._retract(exchange, fact)
            return
        if choice is not None and choice.operation != "ADD":
            target = known.get(choice.target)
            if target is None:
                note = f"the model chose {choice.operation} {choice.target or 'nothing'}, which it was not shown; "
            elif choice.operation == "NOOP":
                if relation(fact.statement, target.statement).relation != "opposite":
                    why = f"model: {choice.reason}"
                    exchange.result.settle(
                        FactDecision(
                            fact=fact.statement,
                            operation="NOOP",
                            applied=False,
                            reason=why,
                            memory_id=target.id,
                            target_id=target.id,
                            worth=fact.worth,
                        )
                    )
                    return
                note = f"the model called {target.id} a duplicate, which says the opposite; "
            else:
                self._replace(exchange, fact, choice, target)
                return
        learned = self._learn(exchange, fact)
        exchange.result.settle(*decision_of(fact, learned, note))

    def _asks_to_forget(self, exchange: Exchange, fact: ExtractedFact) -> bool:
        """Whether the words begin as a request to forget, even if they were read as a fact."""
        said = exchange.events[fact.turn].content[slice(*fact.span)]
        return fact.role != ASSISTANT and (asks_to_forget(said) or asks_to_forget(fact.statement))

    # -- facts to forget or end

    def _retract(self, exchange: Exchange, fact: ExtractedFact) -> None:
        """Forget or end the target memory, if it is clear which one it is and the source may change it."""
        event = exchange.events[fact.turn]
        said = Remark(fact.statement, exchange.scope, event.id, event.at)
        # A statement that ends a memory becomes its next version, in the same scope.
        if fact.operation == END and not self._asks_to_forget(exchange, fact):
            self._end(exchange, fact, find_ended(self.store, said, exchange.scope))
            return
        found = find_forgotten(self.store, said, visible_scopes([exchange.scope]), COMPARED_STATUSES)
        if found.target is None or fact.tentative:
            why = found.reason or "it is not sure that this was asked"
            self._not_forgotten(exchange, fact, f"nothing was forgotten: {why}", found.target)
        else:
            self._forget(exchange, fact, found.target)

    def _forget(self, exchange: Exchange, fact: ExtractedFact, target: Memory) -> None:
        from engram.review.lineage import Lineages

        source, event = exchange.source_of(fact), exchange.events[fact.turn].id
        if problem := self._reason_to_ask(exchange, fact, target):
            # A stored note would repeat the content to forget, so the memory itself waits.
            if target.status in LIVE_STATUSES:
                from engram.review.queue import request_forget

                request_forget(self.store, self.clock, target.id, actor=source, where=event)
            self._not_forgotten(exchange, fact, f"{target.id} {problem}: a person decides with `engram review`", target)
            return
        try:
            Lineages(self.store, self.clock).forget(target.id, actor=source, reason=f"asked for in {event}")
        except Refused as error:
            self._not_forgotten(exchange, fact, str(error), target)
            return
        why = f"{fact.reason}; retired: {target.id}, which `undo` restores"
        exchange.result.settle(
            FactDecision(
                fact=fact.statement,
                operation="FORGET",
                applied=True,
                reason=why,
                memory_id="",
                target_id=target.id,
                worth=fact.worth,
            )
        )

    def _reason_to_ask(self, exchange: Exchange, fact: ExtractedFact, target: Memory) -> str:
        """Why a person must decide whether to forget a memory; "" if it is forgotten at once."""
        if not may_replace(exchange.source_of(fact), target):
            return "comes from a more trusted source"
        if why := reason_to_wait(target):
            return f"is not forgotten by a remark alone ({why})"
        return "" if fact.operation == FORGET else "is not forgotten at once, for it is not sure that this was asked"

    def _not_forgotten(self, exchange: Exchange, fact: ExtractedFact, why: str, target: Memory | None) -> None:
        named = target.id if target is not None else ""
        why = f"{fact.reason}; {why}"
        exchange.result.settle(
            FactDecision(
                fact=fact.statement,
                operation="FORGET",
                applied=False,
                reason=why,
                memory_id="",
                target_id=named,
                worth=fact.worth,
            )
        )

    def _end(self, exchange: Exchange, fact: ExtractedFact, found: Retraction) -> None:
        target = found.target
        if found.is_past:
            why = f"{fact.reason}; ended nothing: {found.reason}"
            exchange.result.settle(
                FactDecision(
                    fact=fact.statement,
                    operation="END",
                    applied=False,
                    reason=why,
                    memory_id="",
                    target_id=found.others[0],
                    worth=fact.worth,
                )
            )
        elif target is None or fact.tentative:
            # It may concern another memory than the gates would select, so it replaces none.
            doubtful = [found.partly.id] if found.partly is not None else []
            learned = self._learn(exchange, fact, doubtful, relation="contradiction" if doubtful else "", alone=True)
            why = found.reason
            exchange.result.settle(*decision_of(fact, learned, f"ended no stored memory: {why}; " if why else ""))
        elif reason_to_wait(target):
            self._wait(exchange, replace(fact, tentative=True), "END", target)
        elif not may_replace(exchange.source_of(fact), target):
            self._wait(exchange, fact, "END", target)
        else:
            learned = self._learn(exchange, fact, supersedes=[target.id])
            decision, stored = decision_of(fact, learned)
            ended = learned.outcome == Outcome.SUPERSEDED
            operation = "END" if ended or learned.outcome == Outcome.PENDING else decision.operation
            exchange.result.settle(replace(decision, operation=operation, target_id=target.id), stored)

    def _wait(self, exchange: Exchange, fact: ExtractedFact, operation: str, target: Memory) -> None:
        """Leave the decision to a person, because the memory's source is more trusted, or the memory is too important."""
        learned = self._learn(exchange, fact, supersedes=[target.id])
        decision, stored = decision_of(fact, learned)
        exchange.result.settle(replace(decision, operation=operation, applied=False, target_id=target.id), stored)

    def _replace(self, exchange: Exchange, fact: ExtractedFact, choice: Choice, target: Memory) -> None:
        """UPDATE or SUPERSEDE by a new version if trust allows it; otherwise the fact waits for review."""
        proposal = propose(self._draft_memory(exchange, fact), autonomous=self.autonomous)
        verdict = judge(proposal, ChangesLookup([]), self.learner.settings)
        operation, statement = choice.operation, fact.statement
        outranked = not may_replace(exchange.source_of(fact), target)
        if not verdict.is_admitted:
            why = f"{verdict.gate}: {verdict.reason}"
            exchange.result.settle(
                FactDecision(
                    fact=statement,
                    operation=operation,
                    applied=False,
                    reason=why,
                    target_id=target.id,
                    worth=fact.worth,
                )
            )
        elif verdict.status != "active" or outranked:
            # Because the fact names a memory from a more trusted source, it contradicts that memory and waits.
            learned = self._learn(exchange, fact, supersedes=[target.id] if outranked else [])
            stored = learned.memory if learned.outcome != Outcome.DUPLICATE else None
            why = f"the model chose {operation} {target.id} ({choice.reason}); {learned.gate}: {learned.reason}"
            memory_id = learned.memory.id if learned.memory is not None else ""
            decision = FactDecision(
                fact=statement,
                operation=operation,
                applied=False,
                reason=why,
                memory_id=memory_id,
                target_id=target.id,
                worth=fact.worth,
            )
            exchange.result.settle(decision, stored)
        elif tier_3_reason(proposal.memory):
            # No agent may reword a memory to this, but the user may have stated it.
            learned = self._learn(exchange, fact, supersedes=[target.id])
            exchange.result.settle(*decision_of(fact, learned, f"model: {choice.reason}; "))
        else:
            new = self._revise(exchange, fact, choice, target)
            why, applied = f"model: {choice.reason}", new.status in LIVE_STATUSES
            decision = FactDecision(
                fact=statement,
                operation=operation,
                applied=applied,
                reason=why,
                memory_id=new.id,
                target_id=target.id,
                worth=fact.worth,
            )
            exchange.result.settle(decision, new)

    def _revise(self, exchange: Exchange, fact: ExtractedFact, choice: Choice, target: Memory) -> Memory:
        revise: Revise
        if self.revise is not None:
            revise = self.revise
        else:
            from engram.review.lineage import Lineages

            revise = Lineages(self.store, self.clock).revise
        fields = self._memory_fields(exchange, fact)
        del fields["scope"], fields["type"]
        fields["valid_from"] = self._valid_from(exchange.events[fact.turn], fact, [target])
        reason, source = f"{choice.operation}: {choice.reason}", exchange.source_of(fact)
        return revise(target.id, actor=source, reason=reason, source=source, **fields)

    def _keep_quote(self, exchange: Exchange, fact: ExtractedFact, learned: Decision) -> None:
        """Keep the exact words of a decision, correction, principle or commitment with enough confidence."""
        memory, event = learned.memory, exchange.events[fact.turn]
        if learned.outcome not in WRITTEN or memory is None or fact.confidence < QUOTED_FROM:
            return
        if fact.type not in QUOTED_TYPES:
            return
        quote = event.content[slice(*fact.span)]
        artifact = NewEvent(
            event.role,
            quote,
            event.at,
            "artifact",
            key=f"quote {event.id} {fact.span[0]}-{fact.span[1]}",
            metadata={VERBATIM: memory.id, QUOTED_EVENT: event.id, "type": fact.type},
        )
        self.store.append_events(quotes_ledger(event.session), [artifact], scope=exchange.scope)

    def _learn(
        self,
        exchange: Exchange,
        fact: ExtractedFact,
        supersedes: Sequence[str] = (),
        *,
        relation: str = "",
        alone: bool = False,
    ) -> Decision:
        more = {"supersedes": supersedes, "associations": self.links}
        learned = self._learner_of(fact).learn(
            {**self._memory_fields(exchange, fact), **{name: value for name, value in more.items() if value}},
            source=self._source_of(exchange, fact),
            learned_by=CAPTURED,
            session=exchange.session,
            autonomous=self.autonomous,
            relation=relation,
            alone=alone,
            is_typed=fact.type in ALWAYS_REVIEWED,
        )
        self._keep_quote(exchange, fact, learned)
        return learned

    def _learner_of(self, fact: ExtractedFact) -> Learner:
        """The learner; for a tentative fact, one that promotes nothing."""
        if not fact.tentative:
            return self.learner
        settings = self.learner.settings
        return replace(self.learner, settings=replace(settings, autopromote_remember=False, autopromote_harvest=False))

    def _source_of(self, exchange: Exchange, fact: ExtractedFact) -> str:
        source = exchange.source_of(fact)
        return TRANSCRIPT if fact.tentative and is_human(source) else source

    def _draft_memory(self, exchange: Exchange, fact: ExtractedFact) -> Memory:
        given, source = self._memory_fields(exchange, fact), exchange.source_of(fact)
        return draft(given, learned_by=CAPTURED, source=source, now=self.clock())

    def _type_of(self, fact: ExtractedFact) -> str:
        """The extracted type. For a plain fact, or a sensitive type, the policy chooses the type.

        Facts that people state about their home, work or food are stored; data that identifies them or their money
        still waits.
        """
        is_own = fact.type in (*ALWAYS_REVIEWED, *CATEGORIES) or memory_type(fact.type).tier == 1
        if fact.type != PLAIN_FACT and is_own:
            return fact.type
        return self.learner.policy.apply_leniently(
            Memory(id="", statement=fact.statement, type=PLAIN_FACT), typed=False
        ).type

    def _memory_fields(self, exchange: Exchange, fact: ExtractedFact) -> dict[str, Any]:
        event = exchange.events[fact.turn]
        quote = event.content[slice(*fact.span)]
        replacing = self._affirmed_key(fact)
        return {
            "statement": fact.statement,
            "type": self._type_of(fact),
            "scope": exchange.scope,
            "confidence": fact.confidence,
            "context": f"{fact.context}\n{quote}" if fact.context else quote,
            "session": exchange.session,
            "task": exchange.task,
            "valid_from": self._valid_from(event, fact, self._heads(exchange, fact, replacing.get("conflict_key", ""))),
            "evidence": [Evidence(event.id, fact.span, quote_hash(quote))],
            **replacing,
            **self._slot(fact),
            **({"decay_days": TEMPORARY_DAYS} if fact.duration == "temporary" else {}),
            **({"metadata": {"owner": fact.owner}} if fact.owner in ("person", "project", "world") else {}),
        }

    def _slot(self, fact: ExtractedFact) -> dict[str, str]:
        """A critical slot for a fact whose loss could do harm, if no policy rule gives it one."""
        described = self.learner.policy.apply_leniently(Memory(id="", statement=fact.statement), typed=False)
        return {"critical_slot": f"critical:{fact.owner}"} if fact.critical and not described.critical_slot else {}

    def _heads(self, exchange: Exchange, fact: ExtractedFact, key: str) -> list[Memory]:
        """The current memories that a fact would supersede by its conflict key."""
        key = (
            key
            or self.learner.policy.apply_leniently(Memory(id="", statement=fact.statement), typed=False).conflict_key
        )
        return self.store.heads(key, exchange.scope) if key else []

    def _valid_from(self, event: Event, fact: ExtractedFact, heads: Sequence[Memory]) -> datetime:
        """When a fact became true: as the turn states, else when it was stated.

        The version it supersedes may be dated later than the change, because somebody mentioned it later. The fact then
        counts from when it was stated.
        """
        said = event.at
        # If the clock was set back between two turns of a ledger, their order decides.
        if later := [
            start for head in heads if (start := start_of(head)) > said and was_said_before(self.store, head, event)
        ]:
            said = max(said, min(max(later), self.clock()))
        return said if fact.since is None or any(start_of(head) > fact.since for head in heads) else fact.since

    def _affirmed_key(self, fact: ExtractedFact) -> dict[str, str]:
        """The conflict key of the affirmed part of a correction: "Tom, not Priya" replaces Priya, as "Tom" would."""
        affirmed = _CORRECTED.sub("", fact.statement)
        if affirmed == fact.statement:
            return {}
        key = self.learner.policy.apply_leniently(Memory(id="", statement=affirmed), typed=False).conflict_key
        return {"conflict_key": key} if key else {}
