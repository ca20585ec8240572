"""The doctor's report: what is healthy, what is not, and how to fix it; and the status of a store."""

from datetime import datetime, timedelta
from typing import Any

from engram.model.memory import Memory
from engram.model.report import Finding, Report
from engram.rules import numbers as n
from engram.store.protocol import Filters, Store

SAMPLE = 2000
"""How many of the newest statements are measured."""
ENOUGH = 20
"""With fewer proposals the pass rate is not judged."""
GATE_DAYS = 30
FAR = 2.0
"""A statement is far outside 25–60 words with less than half, or more than twice, of that."""


def diagnose(store: Store, now: datetime) -> Report:
    """The backend's own findings, then those about ledgers, gates and statements."""
    own = [Finding.of(check.name, check.ok, check.detail, check.advice) for check in store.examine()]
    more = (_ledgers(store), _gates(store, now), _statements(store), _warnings(store))
    return Report((*own, *more), dict(store.facts()))


def _ledgers(store: Store) -> Finding:
    problems = store.verify_ledgers()
    if problems:
        return Finding.of("ledgers", False, "; ".join(problems[:5]), "restore the ledger from a backup")
    return Finding.of("ledgers", True, "every chain verifies")


def _gates(store: Store, now: datetime) -> Finding:
    verdicts = store.verdicts(now - timedelta(days=GATE_DAYS))
    if len(verdicts) < ENOUGH:
        return Finding.of(
            "gates", True, f"{len(verdicts)} proposals in {GATE_DAYS} days: too few to judge the pass rate"
        )
    passed = sum(1 for _, outcome in verdicts if outcome in ("CREATED", "PENDING", "CONTRADICTION", "SUPERSEDED"))
    rate = passed / len(verdicts)
    low, high = n.PASS_RATE
    detail = f"{rate:.0%} of {len(verdicts)} proposals passed (expected: {low:.0%}–{high:.0%})"
    if rate > high:
        return Finding.of("gates", False, detail, "the gates are too loose for what is captured: see `engram review`")
    if rate < low:
        return Finding.of(
            "gates", False, detail, "the gates are too strict for what is captured, or the capture too eager"
        )
    return Finding.of("gates", True, detail)


def _statements(store: Store) -> Finding:
    memories = store.listing(Filters(statuses=("active",)), SAMPLE)
    far = [memory for memory in memories if _is_far(memory)]
    low, high = n.STATEMENT_WORDS
    message = f"{len(far)} of {len(memories)} statements are far outside {low}–{high} words"
    most = len(far) * 2 > len(memories)
    advice = "say what, why and when: 25 to 60 words work best" if most else ""
    return Finding.of("statements", True, message, advice)


def _is_far(memory: Memory) -> bool:
    low, high = n.STATEMENT_WORDS
    words = len(memory.statement.split())
    return words < low / FAR or words > high * FAR


def _warnings(store: Store) -> Finding:
    if not store.warnings:
        return Finding.of("notices", True, "none")
    return Finding.of("notices", True, "; ".join(dict.fromkeys(store.warnings)))


def status(store: Store) -> dict[str, Any]:
    """What is in the store, what was injected last, and how much waits for review."""
    facts = dict(store.facts())
    use = store.last_use("injected")
    last = None
    if use is not None:
        found = [store.get(memory_id) for memory_id in use.ids]
        last = {
            "at": use.at.isoformat(),
            "session": use.session,
            "memories": [{"id": m.id, "statement": m.statement} for m in found if m is not None],
        }
    waiting = store.count(Filters(statuses=("candidate",)))
    return {**facts, "last_injection": last, "waiting_for_review": waiting}
