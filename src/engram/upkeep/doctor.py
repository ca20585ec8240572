"""The doctor: what is healthy, what is not, and what to do about it."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any

from engram.model.memory import Memory
from engram.rules import numbers as n
from engram.store.protocol import Check, Filters, Store

SAMPLE = 2000
"""Newest memories whose statements are measured."""
ENOUGH = 20
"""Fewer proposals than this say nothing about the gates."""
GATE_DAYS = 30
FAR = 2.0
"""A statement is far from 25–60 words when it has less than half, or more than twice, of that."""


def diagnose(store: Store, now: datetime) -> dict[str, Any]:
    """Look at what the backend says of itself, then at ledgers, gates and statements."""
    checks = [*store.examine(), _ledgers(store), _gates(store, now), _statements(store), _warnings(store)]
    return {
        "ok": all(check.ok for check in checks),
        "checks": [asdict(check) for check in checks],
        "facts": dict(store.facts()),
    }


def _ledgers(store: Store) -> Check:
    problems = store.verify_ledgers()
    if problems:
        return Check("ledgers", False, "; ".join(problems[:5]), "restore the ledger from a backup")
    return Check("ledgers", True, "every chain verifies")


def _gates(store: Store, now: datetime) -> Check:
    verdicts = store.verdicts(now - timedelta(days=GATE_DAYS))
    if len(verdicts) < ENOUGH:
        return Check("gates", True, f"{len(verdicts)} proposals in {GATE_DAYS} days: too few to judge the pass rate")
    passed = sum(1 for _, outcome in verdicts if outcome in ("CREATED", "PENDING", "CONTRADICTION", "SUPERSEDED"))
    rate = passed / len(verdicts)
    low, high = n.PASS_RATE
    detail = f"{rate:.0%} of {len(verdicts)} proposals passed (meant: {low:.0%}–{high:.0%})"
    if rate > high:
        return Check("gates", False, detail, "the gates are too loose for what is captured: look at `engram review`")
    if rate < low:
        return Check("gates", False, detail, "the gates are too strict for what is captured, or the capture too eager")
    return Check("gates", True, detail)


def _statements(store: Store) -> Check:
    memories = store.listing(Filters(statuses=("active",)), SAMPLE)
    far = [memory for memory in memories if _is_far(memory)]
    low, high = n.STATEMENT_WORDS
    if not memories or len(far) * 2 <= len(memories):
        return Check("statements", True, f"{len(far)} of {len(memories)} are far from {low}–{high} words")
    advice = "say what, why and when: a statement reads best at 25 to 60 words"
    return Check("statements", True, f"{len(far)} of {len(memories)} are far from {low}–{high} words", advice)


def _is_far(memory: Memory) -> bool:
    low, high = n.STATEMENT_WORDS
    words = len(memory.statement.split())
    return words < low / FAR or words > high * FAR


def _warnings(store: Store) -> Check:
    if not store.warnings:
        return Check("notices", True, "none")
    return Check("notices", True, "; ".join(dict.fromkeys(store.warnings)))


def status(store: Store) -> dict[str, Any]:
    """What the store holds, and what was injected last."""
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
