"""Verification of ledgers: each chain, and each end compared with its anchors in the journal."""

from engram.model.lazy import dataclass, field
from engram.store.files.log.journal import Journal
from engram.store.files.log.ledger import Ledger, ledger_name
from engram.store.ledger import (
    LEDGER_OP,
    REDACT_OP,
    broken_links,
    chain_problems,
    missing_events,
    parse_checkpoint,
    without_checkpoint,
)


@dataclass(slots=True)
class _JournaledAnchors:
    """The journal's anchors: of each ledger since it was last pruned, of redactions, and all of them in order."""

    ends: dict[str, list[str]] = field(default_factory=dict)
    redacted: set[str] = field(default_factory=set)
    all: list[tuple[str, str]] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


def verify_ledgers(journal: Journal, ledger: Ledger) -> list[str]:
    """The problems of each ledger: its chain, and its end compared with the anchors.

    The index is not used: it is derived from these files, possibly before they were changed.
    """
    anchors = _read_anchors(journal)
    sessions = {ledger_name(session): session for session in anchors.ends}
    problems = [*anchors.unread, *ledger.irregular_entries()]
    for name in sorted(ledger.sizes()):
        problems += _ledger_problems(ledger, name, anchors, anchors.ends.get(sessions.pop(name, ""), []))
    for session in sorted(sessions.values()):
        problems += missing_events(session, anchors.ends[session], lambda _: None)
    return problems + broken_links(anchors.all)


def _read_anchors(journal: Journal) -> _JournaledAnchors:
    found = _JournaledAnchors()
    for placed in journal.readable(found.unread):
        entry = placed.entry
        if entry.op == REDACT_OP:
            found.redacted.update(entry.reason.split())
        elif entry.op == LEDGER_OP:
            found.all.append((entry.session, entry.reason))
            anchor = parse_checkpoint(entry.reason)
            if anchor is not None and anchor.is_pruned:
                found.ends[entry.session] = []
            found.ends.setdefault(entry.session, []).append(entry.reason)
    return found


def _ledger_problems(ledger: Ledger, name: str, anchors: _JournaledAnchors, ends: list[str]) -> list[str]:
    events, problems = ledger.checked_events(name)
    problems += chain_problems(events, name, anchors.redacted)
    if events and ledger_name(events[0].session) != name:
        problems.append(
            f"{name}: contains the ledger of {events[0].session}, whose name is {ledger_name(events[0].session)}"
        )
    digests = {event.seq: event.digest for event in events}
    return problems + missing_events(name, ends, digests.get) + without_checkpoint(name, events, ends)
