"""`mem.upkeep`: maintenance of a store."""

from collections.abc import Callable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from engram.model.lazy import dataclass
from engram.model.report import Report
from engram.sessions.feedback import fold
from engram.settings import Settings
from engram.store.protocol import Pruned, Purged, Store, SyncReport
from engram.upkeep.doctor import diagnose, status

SLICE = 500
"""Memories whose uses are folded in by one decision, which limits how long other writers wait."""


@dataclass(slots=True)
class Upkeep:
    """Index, backup, pruning, pause, and the doctor."""

    store: Store
    clock: Callable[[], datetime]
    settings: Settings

    def sync(self) -> SyncReport:
        """Pick up every change made to the files by hand."""
        return self.store.sync()

    def rebuild_index(self, progress: Callable[[str, int, int], None] | None = None) -> SyncReport:
        """Rebuild the index from the files."""
        return self.store.rebuild(progress or (lambda *_: None))

    def reembed(self, progress: Callable[[str, int, int], None] | None = None) -> int:
        """Recompute all vectors with the configured embedder."""
        return self.store.reembed(progress or (lambda *_: None))

    def purge(self, ids: Sequence[str], *, actor: str = "human") -> Purged:
        """Destroy memories and events, and prove it. A fact's newest remaining version becomes current again.

        A memory's text is removed wherever it occurs, including the events that say it. With an event, the facts derived from
        it alone are destroyed; independent events and memories with the same words stay, and `remaining` names them.
        """
        from engram.review.lineage import refuse_outranked
        from engram.upkeep.purge import Purger

        for memory in filter(None, map(self.store.get, ids)):
            refuse_outranked(actor, memory, "purge")
        return Purger(self.store, self.clock).purge(ids, actor=actor)

    def backup(self, target: str | Path) -> dict[str, int]:
        """Write the whole store to one archive."""
        return self.store.backup(Path(target).absolute(), self.clock())

    def fold(self) -> list[str]:
        """Fold in every use not yet folded in, such as those of sessions that never ended."""
        used = self.store.used_since(0)
        slices = (used[start : start + SLICE] for start in range(0, len(used), SLICE))
        return [memory_id for ids in slices for memory_id in fold(self.store, ids)]

    def prune(self, *, dry_run: bool = True) -> Pruned:
        """Delete history older than the settings keep; a dry run only reports what would be deleted."""
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
        """Stop learning and injecting until `resume`; reading and the owner's own verbs still work."""
        self.store.pause(True)

    def resume(self) -> None:
        """End a pause."""
        self.store.pause(False)

    def doctor(self) -> Report:
        """What is healthy, what is not, and what to do about it."""
        return diagnose(self.store, self.clock())

    def status(self) -> dict[str, Any]:
        """What the store contains, what was injected last, and whether it is paused."""
        return {**status(self.store), "paused": self.paused}
