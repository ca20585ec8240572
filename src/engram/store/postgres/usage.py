"""Every use of a memory, appended; read back whole.

Positions come from a sequence, so a use may be committed after one with a higher position. Whoever folds up to a position must
know that none below it is still to come: appenders hold a shared lock while they append, and a reader waits for them.
"""

from collections.abc import Iterable
from dataclasses import replace

from engram.model.usage import Use
from engram.store.postgres.database import Database, Row
from engram.store.postgres.sql import statement


def note(database: Database, use: Use) -> None:
    """Append a use, without waiting for the disk; a rating is somebody's word, and waits."""
    values = {"ids": list(use.ids), "kind": use.kind, "signal": use.signal, "session": use.session, "at": use.at}
    with database.transaction(durable=use.kind == "rated") as connection:
        database.within(connection, statement("share_uses"), {})
        ((position,),) = database.within(connection, statement("next_use"), {})
        database.within(connection, statement("put_use"), {**values, "position": position})


def of(database: Database, memory_ids: Iterable[str]) -> list[Use]:
    """Every noted use of these memories, oldest first; none of an earlier position will appear later."""
    return _settled(database, "uses_of", ids=list(memory_ids))


def in_session(database: Database, session: str) -> list[Use]:
    """Every use noted in a session."""
    return _settled(database, "uses_in", session=session)


def _settled(database: Database, name: str, **values: object) -> list[Use]:
    waits = not database.in_transaction
    with database.transaction(durable=False) as connection:
        if waits and not database.is_replica(connection):
            database.within(connection, statement("await_uses"), {})
        return [_use(row) for row in database.within(connection, statement(name), values)]


def since(database: Database, position: int) -> list[str]:
    """Ids of memories used from a position on."""
    return [row[0] for row in database.run("used_since", position=position)]


def last(database: Database, kind: str) -> Use | None:
    """The newest use of a kind, with all its ids."""
    found = [_use(row) for row in database.run("last_use", kind=kind)]
    return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None


def _use(row: Row) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), at, session, signal, position)
