"""Destroying memories and events, with what was drawn from them: `mem.upkeep.purge`, and the purge of a whole scope."""

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from engram.model.memory import Evidence, Memory
from engram.review.lineage import STANDING, Lineages
from engram.store.protocol import Filters, Purged, Store
from engram.store.purge import QuotingRecord, is_sentence, quoting_lines, says, spoken_in

OP = "redact_evidence"
"""What the journal calls it when a fact loses one of the events it rests on."""


@dataclass(frozen=True, slots=True)
class Destroying:
    """Destroys, and says what is left."""

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
            if memory is not None and memory.lineage and memory.status in STANDING:
                Lineages(self.store, self.clock).forget(memory_id, actor=actor)
        shared = self._let_go(ids, actor)
        purged = self.store.purge(ids, actor=actor, drawn=drawn)
        self._forget_quotes(purged.ids)
        others = quoting_lines([*shared, *self._quoting(quotes)], owners)
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

    def _let_go(self, ids: Collection[str], actor: str) -> list[QuotingRecord]:
        """Facts that others state too no longer rest on what is destroyed; who states them."""
        events = {event_id for event_id in ids if self.store.event(event_id) is not None}
        known = self.store.listing(Filters(statuses=None)) if events else []
        shared = [memory.id for memory in known if memory.id not in ids and self._rests_on(memory, events)]
        others: list[QuotingRecord] = []
        for memory_id in shared:
            with self.store.deciding(OP, actor=actor, about=[memory_id]) as deciding:
                memory = deciding.get(memory_id)
                if memory is not None:
                    left = tuple(evidence for evidence in memory.evidence if evidence.event not in events)
                    deciding.put(memory.but(evidence=left, updated=self.clock()))
                    others += [QuotingRecord(one.event, self.store.owner_of(one.event) or memory.scope) for one in left]
        return others

    def _quoting(self, quotes: Sequence[str]) -> Iterator[QuotingRecord]:
        """Memories that still say what purged events said, a whole one or a sentence of it: they rest on others, or on none."""
        for memory in self.store.listing(Filters(statuses=None)) if quotes else ():
            sentence = memory.statement if is_sentence(memory.statement) else ""
            if any(says(memory.statement, quote) or (sentence and says(quote, sentence)) for quote in quotes):
                yield QuotingRecord(memory.id, memory.scope)

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
