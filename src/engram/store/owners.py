"""Whose a ledger is. It has one owner from its first event on: a task's or session's is theirs, any other its first writer's."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from engram.model.errors import InvalidInput, Refused
from engram.model.event import Session
from engram.model.task import TaskRun
from engram.rules.scopes import GLOBAL, is_person, parse_scope, seen_from, shows

if TYPE_CHECKING:
    from engram.store.protocol import Store

CONVERSATION = "conversation:"
"""How the ledger of a conversation begins that belongs to a scope and to no session."""


def ledger_owner(name: str, task: TaskRun | None, session: Session | None, last: str = "") -> str:
    """The scope a ledger belongs to: its task's, its session's, that of its last event, or the one it is named after.

    "" where none of them says: nobody has written to it, or only an Engram that did not note whose events were.
    """
    if task is not None:
        return task.scope
    if session is not None and session.scopes:
        return session.scopes[0]
    return last or _named_after(name)


def _named_after(name: str) -> str:
    if not name.startswith(CONVERSATION):
        return ""
    try:
        return parse_scope(name.removeprefix(CONVERSATION))
    except InvalidInput:
        return ""


def owner_of_new(name: str, owner: str, scope: str) -> str:
    """The owner of new events in a ledger; `Refused` where the writer names another than the ledger's.

    In a project's session one may speak for what the project sees, such as the store's own `user`: the words stay the project's.
    """
    if scope and owner and scope != owner and (is_person(owner) or scope not in seen_from([owner])):
        raise Refused(f"{name!r} belongs to another owner; nothing was written. Choose another name for the session")
    return owner or scope or GLOBAL


def sees_ledger(store: "Store", name: str, scopes: Collection[str] | None) -> bool:
    """Whether someone who sees these scopes sees a ledger, and the session or task it is the ledger of."""
    return scopes is None or shows(scopes, store.ledger_scope(name) or GLOBAL)
