"""The doctor: what is healthy, what is not, and what to do about it."""

from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from typing import Any

from engram.model.memory import Memory
from engram.rules import numbers as n
from engram.store.protocol import Filters, Store

SAMPLE = 2000
"""Newest memories whose statements are measured."""
ENOUGH = 20
"""Fewer proposals than this say nothing about the gates."""
GATE_DAYS = 30
FAR = 2.0
"""A statement is far from 25–60 words when it has less than half, or more than twice, of that."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing the doctor looked at."""

    name: str
    ok: bool
    detail: str
    advice: str = ""


def diagnose(store: Store, now: datetime) -> dict[str, Any]:
    """Look at files, index, ledgers, gates and statements."""
    facts = store.facts()
    noticed = store.sync()
    checks = [
        _files([*noticed.problems, *facts["problems"]]),
        _index(facts),
        _embedder(facts),
        _ledgers(store),
        _gates(store, now),
        _statements(store),
        _warnings(store),
    ]
    return {
        "ok": all(check.ok for check in checks),
        "checks": [asdict(check) for check in checks],
        "facts": dict(facts),
    }


def _files(problems: list[str]) -> Check:
    unique = list(dict.fromkeys(problems))
    if not unique:
        return Check("files", True, "every memory file can be read")
    return Check("files", False, "; ".join(unique[:10]), "mend the files named; their last good versions stay in force")


def _index(facts: Any) -> Check:
    documents = sum(facts["index"]["documents"].values())
    missing = documents - facts["index"]["vectors"]
    detail = f"{documents} documents, {facts['index']['vectors']} vectors"
    if missing > 0 and facts["embedder"]:
        return Check("index", False, f"{detail}; {missing} lack a vector", "run `engram index --reembed`")
    return Check("index", True, detail)


def _embedder(facts: Any) -> Check:
    here, there = facts["embedder"], facts["index"]["embedder"]
    if here is None:
        return Check("embedder", True, "none: search is by keyword")
    if here != there:
        advice = "run `engram index --reembed`"
        return Check(
            "embedder", False, f"configured {here}, the index holds {there or 'none'}; search is by keyword", advice
        )
    return Check("embedder", True, str(here))


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
