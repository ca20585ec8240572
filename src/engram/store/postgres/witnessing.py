"""Telling the journal of a ledger: where it ended, and whose words were destroyed."""

from collections.abc import Iterable
from itertools import groupby
from typing import Any

from engram.model.event import Event
from engram.store.ledgers import Head
from engram.store.postgres.connections import Connection
from engram.store.postgres.parts import Parts
from engram.store.postgres.sql import statement
from engram.store.witnesses import ANCHOR, FIRST, REDACTED, anchor_text, link_to, redaction_text


def witness(parts: Parts, connection: Connection, session: str, head: Head) -> tuple[str, dict[str, Any]]:
    """The journal's word on where a ledger ends, to be written.

    It is linked to the newest one that is committed; writers to different ledgers do not wait for each other.
    """
    # A number comes from no table, so it is a question of its own; both are one round trip.
    ((seq,),), newest = parts.database.answers(
        connection, [(statement("next_decision"), {}), (statement("newest_anchor"), {})]
    )
    link = link_to(*newest[0]) if newest else FIRST
    told = {"op": ANCHOR, "actor": "engram", "reason": anchor_text(head, link), "session": session}
    return "put_decision", {"seq": seq, "at": parts.clock(), "ids": [], **told}


def redactions(
    parts: Parts, connection: Connection, events: Iterable[Event], actor: str
) -> list[tuple[str, dict[str, Any]]]:
    """The journal's words on events whose content is about to be destroyed, to be written."""
    ordered = sorted((event for event in events if event.salt), key=lambda event: event.session)
    work = []
    for session, redacted in groupby(ordered, key=lambda event: event.session):
        ((seq,),) = parts.database.within(connection, statement("next_decision"), {})
        reason = redaction_text(event.id for event in redacted)
        told = {"op": REDACTED, "actor": actor, "reason": reason, "session": session}
        work.append(("put_decision", {"seq": seq, "at": parts.clock(), "ids": [], **told}))
    return work
