"""Purging: destroy memories and events with the facts drawn from them alone, or everything of a scope."""

import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engram.model.event import Session
from engram.model.memory import Evidence, Memory
from engram.model.task import TASK_STATES, Checkpoint, TaskRun
from engram.review.lineage import VERSIONS, Lineages
from engram.rules.scopes import ancestors
from engram.store.ledger import CONVERSATION
from engram.store.protocol import Filters, Purged, Store
from engram.store.purge import DOCUMENT, Holder, goes_with, is_sentence, named, says, spoken_in

OP = "redact_evidence"
"""What the journal calls it when a fact loses one of the events it rests on."""


@dataclass(frozen=True, slots=True)
class Purger:
    """Purges memories and events, and reports what is left."""

    store: Store
    clock: Callable[[], datetime]

    def purge(self, ids: Sequence[str], *, actor: str) -> Purged:
        """Destroy memories, their words wherever they stand, and events with the facts that rest on them alone."""
        drawn = [memory_id for memory_id in self._drawn_from(ids) if memory_id not in ids]
        return self._destroy([*ids, *drawn], drawn, actor)

    def purge_owned(self, memories: Sequence[str], events: Sequence[str], *, actor: str) -> Purged:
        """Destroy these alone: who else says the same words keeps them."""
        drawn = list(dict.fromkeys([*memories, *self._drawn_from(events)]))
        return self._destroy([*drawn, *events], drawn, actor)

    def _destroy(self, ids: Sequence[str], drawn: Collection[str], actor: str) -> Purged:
        ids = list(dict.fromkeys(ids))
        quotes = [text for i in ids if (event := self.store.event(i)) is not None for text in spoken_in(event)]
        owners = {scope for i in ids if (scope := self.store.owner_of(i)) is not None}
        for memory_id in ids:
            memory = self.store.get(memory_id)
            if memory is not None and memory.lineage and memory.status in VERSIONS:
                Lineages(self.store, self.clock).forget(memory_id, actor=actor)
        shared = self._let_go(ids, actor)
        purged = self.store.purge(ids, actor=actor, drawn=drawn)
        self._forget_quotes(purged.ids)
        others = named([*shared, *self._quoting(quotes)], owners)
        return replace(purged, remaining=tuple(dict.fromkeys([*purged.remaining, *others])))

    def _drawn_from(self, ids: Sequence[str]) -> list[str]:
        """The facts that rest on events of these alone, and the versions that follow on them: those carry their context."""
        events = {event_id for event_id in ids if self.store.event(event_id) is not None}
        if not events:
            return []
        known = self.store.listing(Filters(statuses=None))
        drawn = [memory for memory in known if self._rests_on(memory, events) and not self._elsewhere(memory, events)]
        contexts = {(memory.lineage, memory.context) for memory in drawn if memory.lineage and memory.context}
        return [
            *(memory.id for memory in drawn),
            *(memory.id for memory in known if (memory.lineage, memory.context) in contexts),
        ]

    @staticmethod
    def _rests_on(memory: Memory, events: Collection[str]) -> bool:
        return any(evidence.event in events for evidence in memory.evidence)

    def _elsewhere(self, memory: Memory, events: Collection[str]) -> tuple[Evidence, ...]:
        """Where else a fact is stated: the events besides these that still have their words."""
        others = [evidence for evidence in memory.evidence if evidence.event not in events]
        return tuple(one for one in others if (event := self.store.event(one.event)) is not None and event.content)

    def _let_go(self, ids: Collection[str], actor: str) -> list[Holder]:
        """Facts that others state too no longer rest on what is destroyed; who states them."""
        events = {event_id for event_id in ids if self.store.event(event_id) is not None}
        known = self.store.listing(Filters(statuses=None)) if events else []
        shared = [memory.id for memory in known if memory.id not in ids and self._rests_on(memory, events)]
        others: list[Holder] = []
        for memory_id in shared:
            with self.store.deciding(OP, actor=actor, about=[memory_id]) as deciding:
                memory = deciding.get(memory_id)
                if memory is not None:
                    left = tuple(evidence for evidence in memory.evidence if evidence.event not in events)
                    deciding.put(memory.but(evidence=left, updated=self.clock()))
                    others += [Holder(one.event, self.store.owner_of(one.event) or memory.scope) for one in left]
        return others

    def _quoting(self, quotes: Sequence[str]) -> Iterator[Holder]:
        """Memories that still say what purged events said, a whole one or a sentence of it: they rest on others, or on none."""
        for memory in self.store.listing(Filters(statuses=None)) if quotes else ():
            sentence = memory.statement if is_sentence(memory.statement) else ""
            if any(says(memory.statement, quote) or (sentence and says(quote, sentence)) for quote in quotes):
                yield Holder(memory.id, memory.scope)

    def _forget_quotes(self, ids: Sequence[str]) -> None:
        """A summary quotes sentences of events; those of purged ones go with them."""
        from engram.sessions.summary import Summary, without

        gone: dict[str, set[int]] = {}
        for event in filter(None, (self.store.event(event_id) for event_id in ids)):
            gone.setdefault(event.session, set()).add(event.seq)
        for session_id, numbers in gone.items():
            session = self.store.session(session_id)
            if session is None or not session.summary_through:
                continue
            made = Summary(session.summary, session.summary_through, session.summary_style, session.summary_by)
            left = without(made, numbers)
            self.store.save_session(replace(session, summary=left.text, summary_through=left.through))


PURGED = "purged"
"""What a purged task is about, for whoever finds its id."""
_WORD = re.compile(r"[^\W\d_]{6,}")


@dataclass(frozen=True, slots=True)
class _ScopeContents:
    """What a scope and the scopes below it hold."""

    memories: tuple[Memory, ...]
    tasks: tuple[TaskRun, ...]
    sessions: tuple[Session, ...]
    events: tuple[str, ...]
    named: tuple[str, ...]
    """Its ledgers whose names, given by callers, hold a word of what is said there."""


def purge_scope(store: Store, clock: Callable[[], datetime], scope: str, *, actor: str) -> Purged:
    """Destroy it. What others say in the same words stays theirs, and `remaining` of the answer names it."""
    held = _holdings(store, scope)
    # First: the purge itself is carried to its end after a crash, and by then nothing of these may be left.
    for session in held.sessions:
        store.save_session(replace(session, task="", summary="", summary_through=0, summary_style="", summary_by=""))
    for task in held.tasks:
        store.change_checkpoints(task.id, _blanked)
        store.change_task(task.id, lambda run: _emptied(run, clock()))
    purged = Purger(store, clock).purge_owned([memory.id for memory in held.memories], held.events, actor=actor)
    told = (f"{name}: the session's name stays, in its ledger and in the journal" for name in held.named)
    return replace(purged, remaining=(*purged.remaining, *told))


def _holdings(store: Store, scope: str) -> _ScopeContents:
    memories = [memory for memory in store.listing(Filters(statuses=None)) if _within(memory.scope, scope)]
    tasks = [task for task in store.tasks(TASK_STATES) if _within(task.scope, scope)]
    sessions = [one for one in store.sessions() if one.scopes and _within(one.scopes[0], scope)]
    ledgers = dict.fromkeys(
        [*(task.id for task in tasks), *(session.id for session in sessions), *_ledgers(store, scope)]
    )
    spoken = {ledger: store.events(ledger) for ledger in ledgers}
    said = [event.id for told in spoken.values() for event in told]
    # Wherever else it was said what these memories say, it was said for them, unless it was another owner who said it.
    cited = [(evidence.event, memory.scope) for memory in memories for evidence in memory.evidence]
    spoken_for = [event for event, whose in cited if goes_with(store.owner_of(event) or "", whose)]
    known = [event for event in spoken_for if store.event(event) is not None]
    events = dict.fromkeys([*said, *known])
    words = {word for told in spoken.values() for event in told for word in _words(event.content)}
    words |= {word for memory in memories for text in (memory.statement, *memory.tags) for word in _words(text)}
    named = [name for name in ledgers if not name.startswith((CONVERSATION, DOCUMENT)) and words & _words(name)]
    return _ScopeContents(tuple(memories), tuple(tasks), tuple(sessions), tuple(events), tuple(named))


def _words(text: str) -> set[str]:
    """Words that are long enough to tell something."""
    return set(_WORD.findall(text.casefold()))


def _ledgers(store: Store, scope: str) -> list[str]:
    """Ledgers that belong to a scope, whatever their callers named them."""
    return [name for name in store.ledgers() if _within(store.ledger_scope(name), scope)]


def _within(scope: str, wanted: str) -> bool:
    return wanted in ancestors(scope)


def _emptied(task: TaskRun, now: datetime) -> TaskRun:
    return replace(
        task, goal=PURGED, outcome="", session="", metadata={}, status="deleted", updated=now, ended=task.ended or now
    )


def _blanked(point: Checkpoint) -> Checkpoint:
    """A checkpoint's place in its task, without its words."""
    return Checkpoint(point.id, point.task, point.number, point.created, PURGED, through=point.through, kind=point.kind)
