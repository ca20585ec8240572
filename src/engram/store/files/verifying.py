"""Whether the ledgers are what was written: each chain by itself, and its end as the journal witnessed it."""

from engram.store.files.parts import Parts
from engram.store.ledgers import ANCHOR, PRUNED, missing_events, problems_of


def verify(parts: Parts) -> list[str]:
    """What is wrong, ledger by ledger."""
    anchors = _anchors(parts)
    problems = [problem for name in sorted(parts.ledger.sizes()) for problem in _of_ledger(parts, name, anchors)]
    for session, told in sorted(anchors.items()):
        problems += missing_events(session, told, lambda _: None)
    return problems


def _anchors(parts: Parts) -> dict[str, list[str]]:
    """Every end of each ledger that the journal has seen, since it was last let go."""
    found: dict[str, list[str]] = {}
    for placed in parts.journal.read():
        entry = placed.entry
        if entry.op == ANCHOR:
            found.setdefault(entry.session, []).append(entry.reason)
            if entry.reason == PRUNED:
                found[entry.session] = []
    return {session: told for session, told in found.items() if told}


def _of_ledger(parts: Parts, name: str, anchors: dict[str, list[str]]) -> list[str]:
    """Takes the ledger's anchors away: what is left in the end belongs to ledgers that are gone."""
    events, broken = parts.ledger.readable(name)
    problems = problems_of(events, name) + ([broken] if broken else [])
    if events:
        digests = {event.seq: event.digest for event in events}
        problems += missing_events(name, anchors.pop(events[0].session, []), digests.get)
    return problems
