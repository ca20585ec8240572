"""Removes old history: superseded journal images, uses already folded in, ledgers of ended sessions."""

from datetime import datetime, timedelta

from engram.store.ledger import PRUNED, Head
from engram.store.postgres.context import TenantContext
from engram.store.postgres.ledger import checkpoint_entry
from engram.store.postgres.sql import statement
from engram.store.protocol import Pruned


def prune(parts: TenantContext, now: datetime, journal: int, usage: int, ledger: int, *, dry_run: bool) -> Pruned:
    """Remove history beyond these ages in days, or report what would go; 0 keeps everything of that kind.

    Uses must have been folded in before.
    """
    planned = _plan(parts, now, journal, usage, ledger)
    if dry_run:
        return planned
    if planned.images:
        _drop_images(parts, now - timedelta(days=journal))
    if planned.usage_months:
        parts.database.change("drop_old_uses", cutoff=_month_of(now - timedelta(days=usage)))
    if planned.ledgers:
        _drop_ledgers(parts, planned.ledgers)
    return planned


def _plan(parts: TenantContext, now: datetime, journal: int, usage: int, ledger: int) -> Pruned:
    run = parts.database.run
    images = run("old_images", cutoff=now - timedelta(days=journal))[0][0] if journal else 0
    months = run("old_uses", cutoff=_month_of(now - timedelta(days=usage))) if usage else []
    ledgers = run("old_ledgers", cutoff=now - timedelta(days=ledger)) if ledger else []
    return Pruned(int(images), tuple(month for (month,) in months), tuple(session for (session,) in ledgers))


def _month_of(moment: datetime) -> datetime:
    """The start of the month: usage is removed by whole months, as in files."""
    return moment.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _drop_images(parts: TenantContext, cutoff: datetime) -> None:
    with parts.database.transaction() as connection:
        for name in ("drop_old_images", "drop_empty_decisions"):
            parts.database.within(connection, statement(name), {"cutoff": cutoff})


def _drop_ledgers(parts: TenantContext, sessions: tuple[str, ...]) -> None:
    with parts.database.transaction() as connection:
        rows = parts.database.within(connection, statement("ledger_documents"), {"sessions": list(sessions)})
        numbers = [n for n, _ in rows]
        ended = {"sessions": list(sessions)}
        parts.database.all_of(
            connection,
            [
                ("drop_postings", {"numbers": numbers}),
                ("drop_vectors", {"numbers": numbers}),
                ("drop_documents", {"numbers": numbers}),
                ("drop_ledgers", ended),
                ("drop_heads", ended),
            ],
        )
        # Without a checkpoint they would count as lost. Each one is linked to the one before it.
        for session in sessions:
            entry = checkpoint_entry(parts, connection, session, Head(0, PRUNED))
            parts.database.all_of(connection, [entry])
