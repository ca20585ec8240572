"""Background jobs: derive facts from a task's turns, read due turns, retry the model, and compare batches with stored memories."""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from engram.capture.add import COMPARE, Changes
from engram.capture.buffer import CAPTURE, CaptureBuffer
from engram.capture.conversation import JOB, Conversations
from engram.capture.enrichment import ENRICH_WITH_MODEL, PER_JOB, Enrichment
from engram.capture.learn import Learner
from engram.model.decision import Decision, Outcome
from engram.model.errors import NotFound
from engram.model.lazy import dataclass, replace
from engram.model.memory import Memory
from engram.model.records import Job, TaskRun
from engram.rules.scopes import GLOBAL
from engram.sessions.jobs import Handler
from engram.sessions.tasks import DERIVE, FACT_EVENTS
from engram.store.protocol import Filters, Query, Store
from engram.text.tokens import query_terms

KINDS = (DERIVE, JOB, COMPARE, CAPTURE, ENRICH_WITH_MODEL)
"""Every kind of job that has a handler."""
_COMPARED = 40
"""The number of memories with the words of a fact that are checked for the same evidence."""


@dataclass(slots=True)
class IdempotentLearner(Learner):
    """Learns from each span of the ledger once, so that a job repeated after a crash changes nothing."""

    def learn(
        self,
        given: Mapping[str, Any],
        *,
        source: str,
        learned_by: str,
        session: str = "",
        autonomous: bool = False,
        relation: str = "",
        alone: bool = False,
        is_typed: bool = True,
        skips_conflicts: bool = False,
        here: str | None = None,
    ) -> Decision:
        """Run one proposal through the gates, unless a memory has the same evidence."""
        known = self._find_derived(given)
        if known is not None:
            return Decision(
                outcome=Outcome.DUPLICATE,
                memory=known,
                other=known,
                reason=f"{known.id} was already derived from these words",
                gate="exact",
            )
        # Not `super()`: a dataclass with slots is a new class, and `super()` would refer to the old one.
        return Learner.learn(
            self,
            given,
            source=source,
            learned_by=learned_by,
            session=session,
            autonomous=autonomous,
            relation=relation,
            alone=alone,
            is_typed=is_typed,
            skips_conflicts=skips_conflicts,
            here=here,
        )

    def _find_derived(self, given: Mapping[str, Any]) -> Memory | None:
        filters = Filters(scopes=(given["scope"],), statuses=None)
        terms = tuple(query_terms(given["statement"]))
        found = self.store.candidates(Query(terms, None, _COMPARED), filters).lexical
        places = {(evidence.event, evidence.span) for evidence in given["evidence"]}
        for hit in self.store.get_many([number for number, _ in found]):
            if isinstance(hit.record, Memory) and places & {(e.event, e.span) for e in hit.record.evidence}:
                return hit.record
        return None


def with_idempotent_learner(conversations: Conversations) -> Conversations:
    """The same conversations, learning from each span of the ledger only once."""
    learner = conversations.learner
    return replace(
        conversations, learner=IdempotentLearner(learner.store, learner.settings, learner.policy, learner.clock)
    )


def handlers(store: Store, conversations: Conversations, buffer: CaptureBuffer) -> dict[str, Handler]:
    """The handler of each kind of job."""
    learner = conversations.learner
    conversations = with_idempotent_learner(conversations)

    def derive(job: Job) -> None:
        events = [event for i in job.payload["events"] if (event := store.event(i)) is not None]
        turns = [event for event in events if event.event_type in FACT_EVENTS and event.content]
        if turns:
            task = store.load_record(TaskRun, str(job.payload["task"]))
            scope, name = (task.scope, task.id) if task else (turns[0].scope or GLOBAL, "")
            conversations.take(turns, scope=scope, session=name, task=name)

    def consult(job: Job) -> None:
        try:
            conversations.retry(job.payload)
        except NotFound:
            return  # the turns were purged

    def compare(job: Job) -> None:
        Changes(store, learner.clock).compare_stored([str(memory_id) for memory_id in job.payload["ids"]])

    def enrich(job: Job) -> None:
        enrichment = Enrichment(store, learner.clock, conversations.model)
        enrichment.run(PER_JOB)
        if enrichment.count():
            enrichment.schedule()

    return {DERIVE: derive, JOB: consult, COMPARE: compare, CAPTURE: buffer.run, ENRICH_WITH_MODEL: enrich}


class JobQueue:
    """Queues the jobs of conversations that wait for the model."""

    def __init__(self, store: Store, clock: Callable[[], datetime]) -> None:
        self._store, self._clock = store, clock

    def enqueue(self, kind: str, key: str, payload: Mapping[str, Any]) -> None:
        """Add a job, once for each kind and key."""
        now = self._clock()
        scope = str(payload.get("scope", ""))
        self._store.enqueue([Job(f"{kind}:{key}", kind, now, now, dict(payload), scope=scope)])
