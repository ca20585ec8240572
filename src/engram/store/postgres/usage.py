"""The Postgres store's log of uses.

Positions come from a sequence, so a use may commit after one with a higher position. A reader that folds uses up to a position
must know that none below it is still to come: appenders share a lock while they append, and such a reader waits for them.
"""

from collections.abc import Iterable
from dataclasses import replace

from engram.model.usage import Use
from engram.store.postgres.context import TenantContext
from engram.store.postgres.database import Row
from engram.store.postgres.sql import statement
from engram.store.screen import Screen


class PostgresUsage:
    """The uses of a tenant's memories."""

    parts: TenantContext
    screen: Screen

    def note_use(self, use: Use) -> None:
        """Append a use without waiting for the disk; a rating is a person's decision and does wait."""
        use, database = self.screen.use(use), self.parts.database
        values = {"ids": list(use.ids), "kind": use.kind, "signal": use.signal, "session": use.session, "at": use.at}
        with database.transaction(durable=use.kind == "rated") as connection:
            database.within(connection, statement("share_uses"), {})
            ((position,),) = database.within(connection, statement("next_use"), {})
            database.within(connection, statement("put_use"), {**values, "position": position})

    def uses_of(self, memory_ids: Iterable[str]) -> list[Use]:
        """Every use of these memories, oldest first; none of an earlier position will appear later."""
        return self._settled_uses("uses_of", ids=list(memory_ids))

    def uses_in(self, session: str) -> list[Use]:
        """Every use in a session."""
        return self._settled_uses("uses_in", session=session)

    def _settled_uses(self, name: str, **values: object) -> list[Use]:
        database = self.parts.database
        waits = not database.in_transaction
        with database.transaction(durable=False) as connection:
            if waits and not database.is_replica(connection):
                database.within(connection, statement("await_uses"), {})
            return [_use(row) for row in database.within(connection, statement(name), values)]

    def used_since(self, position: int) -> list[str]:
        """Ids of memories used from a position on."""
        return [memory_id for (memory_id,) in self.parts.database.run("used_since", position=position)]

    def last_use(self, kind: str) -> Use | None:
        """The newest use of a kind, with all its ids."""
        found = [_use(row) for row in self.parts.database.run("last_use", kind=kind)]
        return replace(found[0], ids=tuple(use.ids[0] for use in found)) if found else None


def _use(row: Row) -> Use:
    kind, memory_id, at, session, signal, position = row
    return Use(kind, (memory_id,), at, session, signal, position)
