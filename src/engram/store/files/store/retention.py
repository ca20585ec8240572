"""Prunes old history: replaced journal images, uses already counted, ledgers of ended sessions."""

import json
from datetime import datetime, timedelta
from typing import Any

from engram.disk import json_line, reading, replace_file
from engram.model.lazy import replace
from engram.store.files.log.journal import after_month, decode, read_mark, write_mark
from engram.store.files.reconcile.index_state import (
    IndexContext,
    LogContext,
    append_anchor,
    index_entry,
    journal_tail,
    reindex_journal,
)
from engram.store.files.reconcile.recovery import forget_ledgers
from engram.store.files.states.work import load_session
from engram.store.files.store.reader import histories
from engram.store.ledger import PRUNED, Head
from engram.store.records import ENDED_STATUSES, first_kept_seq
from engram.store.reports import Pruned


def plan(context: IndexContext, now: datetime, journal_days: int, usage_days: int, ledger_days: int) -> Pruned:
    """What pruning by these ages would remove; 0 keeps everything of that kind."""
    return Pruned(
        images=len(_old_images(context, now - timedelta(days=journal_days))) if journal_days else 0,
        usage_months=_old_months(context, now - timedelta(days=usage_days)) if usage_days else (),
        ledgers=_old_ledgers(context, now - timedelta(days=ledger_days)) if ledger_days else (),
    )


def prune(context: IndexContext, now: datetime, journal_days: int, usage_days: int, ledger_days: int) -> Pruned:
    """Prune. Uses must have been counted before. The caller holds the writer lock."""
    planned = plan(context, now, journal_days, usage_days, ledger_days)
    if planned.images:
        _drop_images(context, _old_images(context, now - timedelta(days=journal_days)))
        reindex_journal(context)
    for month in planned.usage_months:
        (context.home.usage / f"{month}.jsonl").unlink(missing_ok=True)
    if planned.usage_months:
        with context.index.writing():
            context.index.db.execute("DELETE FROM uses WHERE position < ?", (after_month(planned.usage_months[-1]),))
    for name in planned.ledgers:
        _drop_ledger(context, name)
    forget_ledgers(context, planned.ledgers)
    return planned


def _drop_ledger(context: IndexContext, name: str) -> None:
    """Journal the pruning first, because a ledger that disappears without an entry counts as lost."""
    first = next(context.ledger.read(name), None)
    if first is not None:
        placed = append_anchor(context, first.session, Head(0, PRUNED), journal_tail(context), durably=True)
        with context.index.writing():
            index_entry(context.index, placed)
    (context.home.ledger / name).unlink(missing_ok=True)


def _old_images(context: IndexContext, cutoff: datetime) -> set[tuple[int, str]]:
    """(seq, id) of images older than the cutoff that a later image replaced.

    The last image and tombstones stay. For a memory no longer in use, the decision that retired it and all later ones
    also stay.
    """
    rows = context.index.db.execute(
        "SELECT i.seq, i.id FROM images i WHERE i.at < ? AND i.op <> 'purge' "
        "AND EXISTS (SELECT 1 FROM images l WHERE l.id = i.id AND l.seq > i.seq)",
        (cutoff.timestamp(),),
    )
    old = {(seq, memory_id) for seq, memory_id in rows}
    kept = _deciding(context, {memory_id for _, memory_id in old})
    return {(seq, memory_id) for seq, memory_id in old if memory_id not in kept or seq < kept[memory_id]}


def _deciding(context: IndexContext, ids: set[str]) -> dict[str, int]:
    """For each memory no longer in use, the number of the entry that retired it."""
    rows = context.index.db.execute(
        "SELECT d.id FROM docs d WHERE d.kind = 'memory' AND d.status IN (SELECT value FROM json_each(?))",
        (json.dumps(ENDED_STATUSES),),
    )
    out = sorted(ids.intersection(memory_id for (memory_id,) in rows))
    return {i: first_kept_seq(one) for i, one in histories(context, out).items()}


def _drop_images(context: LogContext, old: set[tuple[int, str]]) -> None:
    mark = read_mark(context.home)
    if mark is not None:
        # First, because decisions that disappear without this mark count as lost.
        pruned = max(mark.unbroken_since, *(seq for seq, _ in old))
        write_mark(context.home, replace(mark, unbroken_since=pruned))
    for month in context.journal.months():
        path = context.journal.path(month)
        kept = []
        with reading(path) as file:
            for line in file:
                fields = json.loads(line)
                thinned = _remove_old_changes(fields, old)
                if thinned is not None:
                    kept.append(line if thinned is fields else json_line(thinned))
        replace_file(path, b"".join(kept))


def _remove_old_changes(fields: dict[str, Any], old: set[tuple[int, str]]) -> dict[str, Any] | None:
    seq = decode(fields).seq
    changes = [change for change in fields["changes"] if (seq, change["id"]) not in old]
    if len(changes) == len(fields["changes"]):
        return fields
    return {**fields, "changes": changes} if changes else None


def _old_months(context: LogContext, cutoff: datetime) -> tuple[str, ...]:
    """Whole months, never the newest: positions must not start over if the clock is set back."""
    return tuple(month for month in context.usage.months()[:-1] if month < cutoff.strftime("%Y-%m"))


def _old_ledgers(context: LogContext, cutoff: datetime) -> tuple[str, ...]:
    found = []
    for name in context.ledger.sizes():
        first = next(context.ledger.read(name), None)
        session = load_session(context.home, first.session) if first else None
        if session is not None and session.ended is not None and session.ended < cutoff:
            found.append(name)
    return tuple(found)
