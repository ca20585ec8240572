"""Whether the ledgers are what was written: each chain by itself, and what the journal witnessed of it.

Nothing is asked of the index: what it holds was derived from these files, and may have been before they were changed.
"""

from dataclasses import dataclass, field

from engram.store.files.context import StoreContext
from engram.store.files.ledger import ledger_name
from engram.store.ledger import chain_problems
from engram.store.ledger_checkpoints import (
    LEDGER_OP,
    REDACTED,
    broken_links,
    missing_events,
    parse_checkpoint,
    without_checkpoint,
)


@dataclass(slots=True)
class _Words:
    """What the journal says: of each ledger's ends since it was last let go, of redactions, and all of it in order."""

    ends: dict[str, list[str]] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    all: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def verify(parts: StoreContext) -> list[str]:
    """What is wrong, ledger by ledger."""
    words = _words(parts)
    sessions = {ledger_name(session): session for session in words.ends}
    problems = [*words.unread, *parts.ledger.odd()]
    for name in sorted(parts.ledger.sizes()):
        problems += _of_ledger(parts, name, words, words.ends.get(sessions.pop(name, ""), []))
    for session in sorted(sessions.values()):
        problems += missing_events(session, words.ends[session], lambda _: None)
    return problems + broken_links(words.all)


def _words(parts: StoreContext) -> _Words:
    found = _Words()
    for placed in parts.journal.readable(found.unread):
        entry = placed.entry
        if entry.op == REDACTED:
            found.redacted.update(entry.reason.split())
        elif entry.op == LEDGER_OP:
            found.all.append((entry.session, entry.reason))
            anchor = parse_checkpoint(entry.reason)
            if anchor is not None and anchor.is_pruned:
                found.ends[entry.session] = []
            found.ends.setdefault(entry.session, []).append(entry.reason)
    return found


def _of_ledger(parts: StoreContext, name: str, words: _Words, ends: list[str]) -> list[str]:
    events, problems = parts.ledger.examined(name)
    problems += chain_problems(events, name, words.redacted)
    if events and ledger_name(events[0].session) != name:
        problems.append(
            f"{name}: holds the ledger of {events[0].session}, whose name is {ledger_name(events[0].session)}"
        )
    digests = {event.seq: event.digest for event in events}
    return problems + missing_events(name, ends, digests.get) + without_checkpoint(name, events, ends)
