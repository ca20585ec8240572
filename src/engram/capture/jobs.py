"""The jobs that follow on a ledger: facts drawn from a task's turns, and turns that wait for the model."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from engram.capture.conversation import JOB, Conversations
from engram.capture.learn import Learner
from engram.model.decision import Decision, Outcome
from engram.model.errors import NotFound
from engram.model.memory import Memory
from engram.model.task import Job
from engram.rules.scopes import GLOBAL
from engram.sessions.jobs import Handler
from engram.sessions.tasks import DERIVE
from engram.store.protocol import Filters, Query, Store
from engram.text.tokens import query_terms

HEARD = ("message",)
"""Kinds of events facts are drawn from; what a tool printed is evidence, not anybody's word."""
KINDS = (DERIVE, JOB)
"""Every kind of job there is a handler for."""
_LOOKED_AT = 40
"""Memories with the words of a fact that are looked at for one that was drawn from the same place."""


@dataclass(slots=True)
class OnceLearner(Learner):
    """Learns from each place of the ledger once: a job done again, after a crash say, leaves what it left before."""

    def learn(
        self, given: Mapping[str, Any], *, source: str, learned_by: str, session: str = "", autonomous: bool = False
    ) -> Decision:
        """Judge one proposal, unless a memory rests on the same words of the same event."""
        known = self._drawn_before(given)
        if known is not None:
            return Decision(Outcome.DUPLICATE, known, known, f"{known.id} was drawn from these words before", "exact")
        # Named, because a dataclass with slots is made anew, and the plain `super()` would look for the old one.
        return Learner.learn(self, given, source=source, learned_by=learned_by, session=session, autonomous=autonomous)

    def _drawn_before(self, given: Mapping[str, Any]) -> Memory | None:
        filters = Filters(scopes=(given["scope"],), statuses=None)
        told = tuple(query_terms(given["statement"]))
        found = self.store.candidates(Query(told, None, _LOOKED_AT), filters).lexical
        places = {(evidence.event, evidence.span) for evidence in given["evidence"]}
        for hit in self.store.get_many([number for number, _ in found]):
            if isinstance(hit.record, Memory) and places & {(e.event, e.span) for e in hit.record.evidence}:
                return hit.record
        return None


def handlers(store: Store, conversations: Conversations) -> dict[str, Handler]:
    """What to do for each kind of job."""
    learner = conversations.learner
    once = OnceLearner(learner.store, learner.settings, learner.policy, learner.clock)
    conversations = replace(conversations, learner=once)

    def derive(job: Job) -> None:
        events = [event for i in job.payload["events"] if (event := store.event(i)) is not None]
        told = [event for event in events if event.event_type in HEARD and event.content]
        if told:
            task = store.task(str(job.payload["task"]))
            scope, name = (task.scope, task.id) if task else (told[0].scope or GLOBAL, "")
            conversations.take(told, scope=scope, session=name, task=name)

    def consult(job: Job) -> None:
        try:
            conversations.retry(job.payload)
        except NotFound:
            return  # the turns were purged: nothing is left to ask about

    return {DERIVE: derive, JOB: consult}


class JobQueue:
    """Where conversations leave what waits for the model."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Add a job, once for each kind and key."""
        now = self._clock()
        whose = str(payload.get("scope", ""))
        self._store.enqueue([Job(f"{kind}:{key}", kind, now, now, dict(payload), scope=whose)])
