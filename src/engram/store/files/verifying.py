"""Whether the ledgers are what was written: each chain by itself, and its end as the journal witnessed it."""

from engram.store.files.parts import Parts
from engram.store.ledgers import ANCHOR, PRUNED, missing_tail, problems_of


def verify(parts: Parts) -> list[str]:
    """What is wrong, ledger by ledger."""
    anchors = _anchors(parts)
    problems = [problem for name in sorted(parts.ledger.sizes()) for problem in _of_ledger(parts, name, anchors)]
    for session, anchor in sorted(anchors.items()):
        problems += missing_tail(session, anchor, lambda _: None)
    return problems


def _anchors(parts: Parts) -> dict[str, str]:
    """The last end of each ledger that the journal knows."""
    entries = (placed.entry for placed in parts.journal.read())
    return {entry.session: entry.reason for entry in entries if entry.op == ANCHOR}


def _of_ledger(parts: Parts, name: str, anchors: dict[str, str]) -> list[str]:
    """Takes the ledger's anchor away: what is left in the end belongs to ledgers that are gone."""
    events, broken = parts.ledger.readable(name)
    problems = problems_of(events, name) + ([broken] if broken else [])
    if events:
        digests = {event.seq: event.digest for event in events}
        problems += missing_tail(name, anchors.pop(events[0].session, PRUNED), digests.get)
    return problems
