"""`mem.upkeep`: what an owner does now and then."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.model.report import Report
from engram.sessions.feedback import fold
from engram.settings import Settings
from engram.store.protocol import Pruned, Purged, Store, SyncReport
from engram.upkeep.doctor import diagnose, status

SLICE = 500
"""Memories whose uses are folded in by one decision: bounds how long other writers wait."""


@dataclass(slots=True)
class Upkeep:
    """Index, backup, pruning, pause, and the doctor."""

    store: Store
    clock: Callable[[], datetime]
    settings: Settings

    def sync(self) -> SyncReport:
        """Take in every change made to the files by hand."""
        return self.store.sync()

    def rebuild_index(self, progress: Callable[[str, int, int], None] | None = None) -> SyncReport:
        """Make the index anew from the files."""
        return self.store.rebuild(progress or (lambda *_: None))

    def reembed(self, progress: Callable[[str, int, int], None] | None = None) -> int:
        """Make all vectors with the configured embedder."""
        return self.store.reembed(progress or (lambda *_: None))

    def purge(self, ids: Sequence[str], *, actor: str = "human") -> Purged:
        """Destroy memories and events, and prove it. A fact's newest survivor is in force again.

        The words of a memory go wherever they stand, the events that say them included. An event takes the facts with it that
        rest on it alone; who says the same words independently keeps them, and `remaining` names those events and memories.
        """
        from engram.review.lineage import refuse_outranked
        from engram.upkeep.purge import Destroying

        for memory in filter(None, map(self.store.get, ids)):
            refuse_outranked(actor, memory, "purge")
        return Destroying(self.store, self.clock).purge(ids, actor=actor)

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

    def doctor(self) -> Report:
        """What is healthy, what is not, and what to do about it."""
        return diagnose(self.store, self.clock())

    def status(self) -> dict[str, Any]:
        """What the store holds, what was injected last and how to stop one item."""
        return {**status(self.store), "paused": self.paused}
