"""Purging: destroys memories and events with the facts derived from them alone, or everything of a scope.

Each purge is recorded before it removes anything, so that it can be finished after an interruption.
"""

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any, Final

from engram.decisions.authority import is_rejected_by_person, refuse_outranked, refuse_overturning
from engram.decisions.execution import Change, LockedMemories, execute_change
from engram.decisions.versions import VERSION_STATUSES, contradicting_candidates
from engram.model.arguments import QUOTED_EVENT
from engram.model.errors import StoreCorrupt
from engram.model.lazy import dataclass, replace
from engram.model.memory import Evidence, Memory
from engram.model.records import TASK_STATES, Checkpoint, Session, TaskRun, quotes_ledger
from engram.review.lineage import Lineages
from engram.rules.scopes import ancestors, may_change
from engram.rules.sources import Rank, rank_of
from engram.store.documents import is_redacted
from engram.store.ledger import CONVERSATION_PREFIX, ledger_scope
from engram.store.protocol import Filters, Store
from engram.store.purge import (
    DOCUMENT_PREFIX,
    QuotingRecord,
    contains_words,
    is_removed_with,
    is_sentence,
    quoting_lines,
    texts_of,
    texts_of_event,
    without_counts,
)
from engram.store.records import ENDED_STATUSES, ENGRAM_ACTOR
from engram.store.references import Scopes
from engram.store.reports import Purged

PURGE_PREFIX = "purge/"
"""The prefix of the names of these states."""
_TOKEN_BYTES = 6
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class UnfinishedPurge:
    """The target of an interrupted purge: records by id, or everything of a scope.

    It keeps ids and digests of names, never the content.
    """

    state: str
    ids: tuple[str, ...]
    drawn: tuple[str, ...]
    actor: str
    at: datetime
    scope: str = ""
    names: tuple[str, ...] = ()
    """Digests of the names and aliases of the memories."""
    owners: tuple[str, ...] = ()
    """The scopes of the records that are destroyed by id."""

    def includes(self, ref: str) -> bool:
        """Whether an id, a name or an alias belongs to the target."""
        return ref in self.ids or _digest(ref) in self.names

    @property
    def repeat_command(self) -> str:
        """The command with which a person can finish it."""
        if self.scope:
            return f'`Engram.purge("{self.scope}")` again'
        first = next(iter(self.ids), "ID")
        return (
            f"`engram ledger redact {first}` again"
            if first.startswith("EVT-")
            else f"`engram forget {first} --purge` again"
        )


def begin_purge(
    store: Store,
    now: datetime,
    ids: Sequence[str],
    *,
    actor: str,
    drawn: Collection[str] = (),
    scope: str = "",
    memories: Iterable[Memory],
) -> UnfinishedPurge:
    """Record a purge durably, before its first removal."""
    names = dict.fromkeys(name for memory in memories for name in (memory.name, *memory.aliases) if name)
    owners = sorted({owner for one in ids if (owner := store.owner_of(one)) is not None})
    begun = UnfinishedPurge(
        state=f"{PURGE_PREFIX}{store.new_token(_TOKEN_BYTES)}", ids=tuple(ids), drawn=tuple(drawn), actor=actor, at=now,
        scope=scope, names=tuple(map(_digest, names)), owners=tuple(owners),
    )  # fmt: skip
    value = {
        "ids": list(begun.ids), "drawn": list(begun.drawn), "actor": actor, "at": now.isoformat(), "scope": scope,
        "names": list(begun.names), "owners": owners,
    }  # fmt: skip
    store.change_state(begun.state, lambda _: value)
    return begun


def end_purge(store: Store, begun: UnfinishedPurge) -> None:
    """Remove the record of a finished purge."""
    store.change_state(begun.state, lambda _: {})


def unfinished_purges(store: Store) -> list[UnfinishedPurge]:
    """The recorded purges, oldest first. A record that cannot be read is left to the doctor to report."""
    found = []
    for name in store.states(PURGE_PREFIX):
        try:
            value = store.state(name)
            if value:
                found.append(_decode_purge(name, value))
        except (StoreCorrupt, KeyError, TypeError, ValueError):
            continue
    return sorted(found, key=lambda one: (one.at, one.state))


def _decode_purge(name: str, value: Any) -> UnfinishedPurge:
    ids, drawn, names = ([str(one) for one in value[field]] for field in ("ids", "drawn", "names"))
    at = datetime.fromisoformat(value["at"])
    return UnfinishedPurge(
        state=name, ids=tuple(ids), drawn=tuple(drawn), actor=str(value["actor"]), at=at, scope=str(value["scope"]),
        names=tuple(names), owners=tuple(map(str, value.get("owners", ()))),
    )  # fmt: skip


def _digest(ref: str) -> str:
    return hashlib.blake2b(ref.encode("utf-8", "surrogatepass"), digest_size=_DIGEST_BYTES).hexdigest()


OP: Final = "redact_evidence"
"""The journal's name for removing an event from a fact's evidence."""


@dataclass(frozen=True, slots=True)
class Purger:
    """Purges memories and events, and reports what remains."""

    store: Store
    clock: Callable[[], datetime]

    def purge(self, ids: Sequence[str], *, actor: str) -> Purged:
        """Destroy memories and their text wherever it occurs, and events with the facts derived from them alone.

        An interrupted purge of one of them is finished first, and included in the report.
        """
        begun = [one for one in unfinished_purges(self.store) if any(map(one.includes, ids))]
        reports = [self.resume(one) for one in begun]
        done = {i for report in reports for i in report.ids}
        ids = [i for i in ids if i not in done]
        if not ids:
            return _merge_reports(reports)
        drawn = [memory_id for memory_id in self._drawn_from(ids) if memory_id not in ids]
        memories = [memory for memory in map(self.store.get, [*ids, *drawn]) if memory is not None]
        _refuse_purge(self.store, memories, actor)
        wanted = list(dict.fromkeys([*ids, *self._quotes_of(ids), *drawn]))
        recorded = begin_purge(self.store, self.clock(), wanted, actor=actor, drawn=drawn, memories=memories)
        purged = self._destroy(wanted, drawn, actor)
        end_purge(self.store, recorded)
        return _merge_reports([*reports, purged])

    def resume(self, begun: UnfinishedPurge) -> Purged:
        """Finish an interrupted purge, and return its report."""
        # First, because it knows the words that were to be removed, and proves that they are gone.
        before = self.store.purge([], actor=begun.actor)
        self._forget_redacted()
        if begun.scope:
            after = purge_scope(self.store, self.clock, begun.scope, actor=begun.actor)
        else:
            left = [i for i in begun.ids if self._is_left(i)]
            after = self._destroy(left, begun.drawn, begun.actor) if left else before
        end_purge(self.store, begun)
        return replace(_merge_reports([before, after]), ids=tuple(sorted({*begun.ids, *before.ids, *after.ids})))

    def _is_left(self, record_id: str) -> bool:
        event = self.store.event(record_id)
        return self.store.get(record_id) is not None or (event is not None and not is_redacted(event))

    def _quotes_of(self, ids: Sequence[str]) -> list[str]:
        """The artifacts that quote these events, or retellings of these memories, word for word."""
        events = [event for event in map(self.store.event, ids) if event is not None]
        kept = {name: self.store.events(name) for name in {quotes_ledger(event.session) for event in events}}
        sources = {event.id for event in events}
        memories = [memory for memory in map(self.store.get, ids) if memory is not None]
        retold = (one.retelling for memory in memories for one in memory.evidence)
        return [
            *(one.id for found in kept.values() for one in found if one.metadata.get(QUOTED_EVENT) in sources),
            *(told.event for told in retold if told is not None and self._is_artifact(told.event)),
        ]

    def _is_artifact(self, event_id: str) -> bool:
        event = self.store.event(event_id)
        return event is not None and QUOTED_EVENT in event.metadata

    def purge_exactly(
        self, memories: Sequence[str], events: Sequence[str], *, actor: str, kept: Collection[str] = ()
    ) -> Purged:
        """Destroy only these: other records with the same words stay, and so does everything in `kept`, whatever its evidence."""
        drawn = [i for i in dict.fromkeys([*memories, *self._drawn_from(events)]) if i not in kept]
        return self._destroy([*drawn, *events], drawn, actor)

    def _destroy(self, ids: Sequence[str], drawn: Collection[str], actor: str) -> Purged:
        ids = list(dict.fromkeys(ids))
        quotes = [text for i in ids if (event := self.store.event(i)) is not None for text in texts_of_event(event)]
        owners = {scope for i in ids if (scope := self.store.owner_of(i)) is not None}
        for memory_id in ids:
            memory = self.store.get(memory_id)
            if memory is None or memory.status not in VERSION_STATUSES:
                continue
            if memory.lineage or contradicting_candidates(self.store, [memory_id]):
                Lineages(self.store, self.clock).forget(memory_id, actor=actor)
        shared = self._release_shared_facts(ids, actor)
        merged = self._detach_merged(ids, actor)
        # First: after a crash, the purge that is completed does not know about files outside of the store.
        beyond = self._clean_context_files(ids)
        purged = self.store.purge(ids, actor=actor, drawn=drawn)
        self._forget_quotes(purged.ids)
        others = quoting_lines([*shared, *self._quoting(quotes)], owners)
        remaining = tuple(dict.fromkeys([*purged.remaining, *others, *merged]))
        return replace(purged, remaining=remaining, out_of_reach=(*beyond, *purged.out_of_reach))

    def _clean_context_files(self, ids: Sequence[str]) -> tuple[str, ...]:
        from engram.upkeep.context_files import purge_context_files

        memories = [memory for memory in map(self.store.get, ids) if memory is not None]
        texts = {text for memory in memories for text in texts_of(memory)}
        return purge_context_files(self.store, [memory.id for memory in memories], texts)

    def _drawn_from(self, ids: Sequence[str]) -> list[str]:
        """The facts derived from these events alone, and later versions that carry the same context."""
        events = {event_id for event_id in ids if self.store.event(event_id) is not None}
        if not events:
            return []
        known = self.store.listing(Filters(statuses=None))
        drawn = [
            memory
            for memory in known
            if self._has_evidence_in(memory, events) and not self._other_evidence(memory, events)
        ]
        contexts = {(memory.lineage, memory.context) for memory in drawn if memory.lineage and memory.context}
        return [
            *(memory.id for memory in drawn),
            *(memory.id for memory in known if (memory.lineage, memory.context) in contexts),
        ]

    @staticmethod
    def _has_evidence_in(memory: Memory, events: Collection[str]) -> bool:
        return any(evidence.event in events for evidence in memory.evidence)

    def _other_evidence(self, memory: Memory, events: Collection[str]) -> tuple[Evidence, ...]:
        """The fact's other evidence: further events that still have their content."""
        others = [evidence for evidence in memory.evidence if evidence.event not in events]
        return tuple(one for one in others if (event := self.store.event(one.event)) is not None and event.content)

    def _release_shared_facts(self, ids: Collection[str], actor: str) -> list[QuotingRecord]:
        """Remove these events from the evidence of facts that other events also support; returns those events."""
        events = {event_id for event_id in ids if self.store.event(event_id) is not None}
        known = self.store.listing(Filters(statuses=None)) if events else []
        shared = [memory.id for memory in known if memory.id not in ids and self._has_evidence_in(memory, events)]
        others: list[QuotingRecord] = []
        for memory_id in shared:
            memory = execute_change(
                self.store,
                self.clock,
                Change(op=OP, actor=actor, plan=partial(_remove_evidence, memory_id, events), related=[memory_id]),
            )
            if memory is not None:
                others += [
                    QuotingRecord(one.event, self.store.owner_of(one.event) or memory.scope) for one in memory.evidence
                ]
        return others

    def _detach_merged(self, ids: Collection[str], actor: str) -> list[str]:
        """Remove references to destroyed memories as successors; returns a line for each memory that was merged into one."""
        lines: list[str] = []
        for merged in [memory for memory in map(self.store.get, ids) if memory is not None]:
            for other_id in [i for i in merged.supersedes if i not in ids]:
                plan = partial(_detach_merged, other_id, merged.id)
                if execute_change(self.store, self.clock, Change(op=OP, actor=actor, plan=plan, related=[other_id])):
                    lines.append(
                        f"{other_id}: was merged into {merged.id} and keeps its own words; "
                        f"`engram forget {other_id} --purge` destroys it, too"
                    )
        return lines

    def _quoting(self, quotes: Sequence[str]) -> Iterator[QuotingRecord]:
        """Memories that still repeat purged events, whole or in part, because they have other evidence or none."""
        for memory in self.store.listing(Filters(statuses=None)) if quotes else ():
            sentence = memory.statement if is_sentence(memory.statement) else ""
            if any(
                contains_words(memory.statement, quote) or (sentence and contains_words(quote, sentence))
                for quote in quotes
            ):
                yield QuotingRecord(memory.id, memory.scope)

    def _forget_redacted(self) -> None:
        """Remove sentences from summaries that quote events redacted by an interrupted purge."""
        sessions = [session.id for session in self.store.list_records(Session) if session.summary_through]
        events = (event for session_id in sessions for event in self.store.events(session_id))
        self._forget_quotes([event.id for event in events if is_redacted(event)])

    def _forget_quotes(self, ids: Sequence[str]) -> None:
        """Remove sentences from summaries that quote purged events."""
        from engram.sessions.summary import Summary, without

        gone: dict[str, set[int]] = {}
        for event in filter(None, (self.store.event(event_id) for event_id in ids)):
            gone.setdefault(event.session, set()).add(event.seq)
        for session_id, numbers in gone.items():
            session = self.store.load_record(Session, session_id)
            if session is None or not session.summary_through:
                continue
            made = Summary(session.summary, session.summary_through, session.summary_style, session.summary_by)
            left = without(made, numbers)
            self.store.save_record(replace(session, summary=left.text, summary_through=left.through))


def _remove_evidence(memory_id: str, events: Collection[str], memories: LockedMemories) -> Memory | None:
    """The plan that removes events from the evidence of a memory; None if the memory is gone."""
    memory = memories.get(memory_id)
    if memory is None:
        return None
    left = tuple(evidence for evidence in memory.evidence if evidence.event not in events)
    after = memory.replace(evidence=left, updated=memories.now)
    memories.put(after)
    return after


def _detach_merged(memory_id: str, successor: str, memories: LockedMemories) -> bool:
    """The plan that removes a memory's successor, and whether the successor was this one."""
    memory = memories.get(memory_id)
    if memory is None or memory.superseded_by != successor:
        return False
    memories.put(memory.replace(superseded_by="", updated=memories.now))
    return True


def finish_purge(store: Store, clock: Callable[[], datetime], ref: str, scopes: Scopes = None) -> Purged | None:
    """Finish the interrupted purge of an id, name or alias that no memory has any more; None if there is none.

    `scopes` are those of the caller, who may only finish purges of records they may change.
    """
    if store.get(ref) is not None:
        return None
    purger = Purger(store, clock)
    if begun := [one for one in unfinished_purges(store) if one.includes(ref) and _may_finish(one, scopes)]:
        return as_owner_sees(_merge_reports([purger.resume(one) for one in begun]), scopes)
    # An older version recorded a purge only in the store's own files.
    return store.purge([], actor=ENGRAM_ACTOR) if scopes is None and ref in store.interrupted_purge() else None


def as_owner_sees(purged: Purged, scopes: Scopes) -> Purged:
    """The report as an owner may see it, without the number of others who use the same words; unchanged for the operator."""
    return purged if scopes is None else replace(purged, remaining=without_counts(purged.remaining))


def _may_finish(begun: UnfinishedPurge, scopes: Scopes) -> bool:
    owners = (begun.scope,) if begun.scope else begun.owners
    return scopes is None or (bool(owners) and all(may_change(scopes, owner) for owner in owners))


def finish_purges(store: Store, clock: Callable[[], datetime]) -> list[Purged]:
    """Finish every interrupted purge."""
    return [Purger(store, clock).resume(begun) for begun in unfinished_purges(store)]


def _merge_reports(reports: Sequence[Purged]) -> Purged:
    """Merge several reports into one."""

    def merge_lines(name: str) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line for report in reports for line in getattr(report, name)))

    return Purged(ids=merge_lines("ids"), remaining=merge_lines("remaining"), out_of_reach=merge_lines("out_of_reach"))


PURGED_GOAL = "purged"
"""The goal of a purged task."""
_WORD = re.compile(r"[^\W\d_]{6,}")


@dataclass(frozen=True, slots=True)
class _ScopeContents:
    """The contents of a scope and the scopes below it."""

    memories: tuple[Memory, ...]
    tasks: tuple[TaskRun, ...]
    sessions: tuple[Session, ...]
    events: tuple[str, ...]
    ledgers: tuple[str, ...]
    named: tuple[str, ...]
    """Its ledgers whose names, chosen by callers, contain a word of its memories."""


def purge_scope(store: Store, clock: Callable[[], datetime], scope: str, *, actor: str) -> Purged:
    """Destroy everything of a scope. Memories of others with the same words stay, and `remaining` names them.

    Memories rejected by a person also stay rejected, unless a person purges the scope. Raises `Refused` if an agent
    would destroy what a person stated or decided.
    """
    contents = _contents_of(store, scope)
    _refuse_purge(store, contents.memories, actor)
    rejected = [] if rank_of(actor) == Rank.PERSON else _rejections(store, contents.memories)
    ids = [memory.id for memory in contents.memories]
    earlier = [begun for begun in unfinished_purges(store) if begun.scope and _is_within(begun.scope, scope)]
    begun = begin_purge(store, clock(), [*ids, *contents.events], actor=actor, scope=scope, memories=contents.memories)
    # First: after a crash the purge is completed, and by then none of this may be left.
    for session in contents.sessions:
        store.save_record(replace(session, task="", summary="", summary_through=0, summary_style="", summary_by=""))
    for task in contents.tasks:
        store.change_checkpoints(task.id, _blank_checkpoint)
        store.change_task(task.id, lambda run: _blank_task(run, clock()))
    _drop_states(store, contents.ledgers)
    purged = Purger(store, clock).purge_exactly(ids, contents.events, actor=actor, kept=rejected)
    for one in (*earlier, begun):
        end_purge(store, one)
    stay = (
        f"{i}: a person rejected it, and without it, it could be proposed again; a person may purge it"
        for i in rejected
    )
    names = (f"{name}: the session's name stays in its ledger and in the journal" for name in contents.named)
    return replace(purged, remaining=(*purged.remaining, *stay, *names))


def _refuse_purge(store: Store, memories: Iterable[Memory], actor: str) -> None:
    """Raise `Refused` if an actor may not destroy one of these; a purged rejection could be proposed again."""
    for memory in memories:
        refuse_outranked(actor, memory, "purge")
        if memory.status in ENDED_STATUSES:
            refuse_overturning(actor, memory, store.history(memory.id))


def _rejections(store: Store, memories: Iterable[Memory]) -> list[str]:
    """Those of the memories that a person rejected."""
    found = [memory for memory in memories if memory.status == "rejected"]
    return [memory.id for memory in found if is_rejected_by_person(memory, store.history(memory.id))]


def _contents_of(store: Store, scope: str) -> _ScopeContents:
    memories = [memory for memory in store.listing(Filters(statuses=None)) if _is_within(memory.scope, scope)]
    tasks = [task for task in store.list_records(TaskRun, statuses=TASK_STATES) if _is_within(task.scope, scope)]
    sessions = [one for one in store.list_records(Session) if one.scopes and _is_within(one.scopes[0], scope)]
    ledgers = dict.fromkeys(
        [*(task.id for task in tasks), *(session.id for session in sessions), *_ledgers(store, scope)]
    )
    logged = [event for ledger in ledgers for event in store.events(ledger)]
    # Events elsewhere that these memories cite belong to them, unless another owner recorded them.
    cited = [(evidence.event, memory.scope) for memory in memories for evidence in memory.evidence]
    owned = [event for event, owner in cited if is_removed_with(store.owner_of(event) or "", owner)]
    events = dict.fromkeys([*(event.id for event in logged), *(i for i in owned if store.event(i) is not None)])
    words = {word for event in logged for word in _words(event.content)}
    words |= {
        word for memory in memories for text in (memory.statement, *memory.tags, *memory.cues) for word in _words(text)
    }
    named = [
        name for name in ledgers if not name.startswith((CONVERSATION_PREFIX, DOCUMENT_PREFIX)) and words & _words(name)
    ]
    return _ScopeContents(tuple(memories), tuple(tasks), tuple(sessions), tuple(events), tuple(ledgers), tuple(named))


def _drop_states(store: Store, ledgers: Collection[str]) -> None:
    """Remove the states named after these ledgers, such as `buffer/<session>`."""
    for name in store.states(""):
        if name.partition("/")[2] in ledgers:
            store.change_state(name, lambda _: {})


def _words(text: str) -> set[str]:
    """Words long enough to be identifying."""
    return set(_WORD.findall(text.casefold()))


def _ledgers(store: Store, scope: str) -> list[str]:
    """Ledgers that belong to a scope, whatever their names."""
    return [name for name in store.ledgers() if _is_within(ledger_scope(store, name), scope)]


def _is_within(scope: str, wanted: str) -> bool:
    return wanted in ancestors(scope)


def _blank_task(task: TaskRun, now: datetime) -> TaskRun:
    return replace(
        task,
        goal=PURGED_GOAL,
        outcome="",
        session="",
        metadata={},
        status="deleted",
        updated=now,
        ended=task.ended or now,
    )


def _blank_checkpoint(point: Checkpoint) -> Checkpoint:
    """A checkpoint without its text."""
    return Checkpoint(
        point.id, point.task, point.number, point.created, PURGED_GOAL, through=point.through, kind=point.kind
    )
