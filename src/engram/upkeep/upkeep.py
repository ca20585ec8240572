"""`mem.upkeep`: what an owner does now and then."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.review.lineage import Lineages
from engram.sessions.feedback import fold
from engram.settings import Settings
from engram.store.lineages import IN_FORCE
from engram.store.protocol import Filters, Noticed, Pruned, Purged, Store
from engram.store.purged_words import enough, texts_of
from engram.upkeep.doctor import diagnose, status

SLICE = 500
"""Memories whose uses are folded in by one decision: bounds how long other writers wait."""


@dataclass(slots=True)
class Upkeep:
    """Index, backup, pruning, pause, and the doctor."""

    store: Store
    clock: Callable[[], datetime]
    settings: Settings

    def sync(self) -> Noticed:
        """Take in every change made to the files by hand."""
        return self.store.sync()

    def rebuild_index(self, progress: Callable[[str, int, int], None] | None = None) -> Noticed:
        """Make the index anew from the files."""
        return self.store.rebuild(progress or (lambda *_: None))

    def reembed(self, progress: Callable[[str, int, int], None] | None = None) -> int:
        """Make all vectors with the configured embedder."""
        return self.store.reembed(progress or (lambda *_: None))

    def purge(self, ids: Sequence[str], *, actor: str = "human") -> Purged:
        """Destroy memories and events, and prove it. A fact's newest survivor is in force again.

        Facts drawn from an event go with it, in every version: their words are the event's. `remaining` names memories
        that quote it in their context and were not drawn from it.
        """
        ids = list(dict.fromkeys([*ids, *self._drawn_from(ids)]))
        quotes = self._words_of(ids)
        for memory_id in ids:
            memory = self.store.get(memory_id)
            if memory is not None and memory.lineage and memory.status in IN_FORCE:
                Lineages(self.store, self.clock).forget(memory_id, actor=actor)
        purged = self.store.purge(ids, actor=actor)
        self._forget_quotes(purged.ids)
        return replace(purged, remaining=(*purged.remaining, *self._quoting(quotes)))

    def _drawn_from(self, ids: Sequence[str]) -> list[str]:
        """The facts that rest on events of these, and the versions that follow on them: those carry their context."""
        events = {event_id for event_id in ids if self.store.event(event_id) is not None}
        if not events:
            return []
        known = self.store.listing(Filters(statuses=None))
        drawn = [memory for memory in known if any(evidence.event in events for evidence in memory.evidence)]
        contexts = {(memory.lineage, memory.context) for memory in drawn if memory.lineage and memory.context}
        return [
            *(memory.id for memory in drawn),
            *(memory.id for memory in known if (memory.lineage, memory.context) in contexts),
        ]

    def _words_of(self, ids: Sequence[str]) -> list[str]:
        return enough(event.content for i in ids if (event := self.store.event(i)) is not None)

    def _quoting(self, quotes: Sequence[str]) -> list[str]:
        """What still says the words of purged events: memories nobody drew from them."""
        if not quotes:
            return []
        return [
            f"{memory.id}: it says the same words; purge it too"
            for memory in self.store.listing(Filters(statuses=None))
            if any(text and (text in quote or quote in text) for text in enough(texts_of(memory)) for quote in quotes)
        ]

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

    def backup(self, target: str | Path) -> dict[str, int]:
        """Write the whole store to one archive."""
        return self.store.backup(Path(target).absolute(), self.clock())

    def fold(self) -> list[str]:
        """Fold every use not yet folded in; sessions that never ended leave some."""
        used = self.store.used_since(0)
        slices = (used[start : start + SLICE] for start in range(0, len(used), SLICE))
        return [memory_id for ids in slices for memory_id in fold(self.store, ids)]

    def prune(self, *, dry_run: bool = True) -> Pruned:
        """Let go of history older than the settings keep; a dry run only says what would go."""
        settings = self.settings
        if not dry_run and settings.keep_usage_days:
            self.fold()
        return self.store.prune(
            self.clock(),
            settings.keep_journal_days,
            settings.keep_usage_days,
            settings.keep_ledger_days,
            dry_run=dry_run,
        )

    @property
    def paused(self) -> bool:
        """Whether the owner has paused learning and injection."""
        return self.store.paused

    def pause(self) -> None:
        """Stop learning and injecting until `resume`; reading and the owner's own verbs go on."""
        self.store.pause(True)

    def resume(self) -> None:
        """End a pause."""
        self.store.pause(False)

    def doctor(self) -> dict[str, Any]:
        """What is healthy and what is not, with what to do."""
        return diagnose(self.store, self.clock())

    def status(self) -> dict[str, Any]:
        """What the store holds, what was injected last and how to stop one item."""
        return {**status(self.store), "paused": self.paused}
