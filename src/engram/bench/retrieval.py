"""How well the store finds: a data set's conversations go in as ledger events, its questions are asked, the ranking is measured."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engram.bench.bm25 import Bm25
from engram.bench.dataset import Conversation, Question
from engram.bench.floors import peak_memory, percentile
from engram.bench.measures import Tally, sessions_in_order
from engram.client import Engram
from engram.model.errors import InvalidInput

DEPTH = 50
"""Hits asked for: enough that ten sessions can be told apart."""
BATCH = 2_000
BASELINES = {"bm25": Bm25}
"""Rankings that can be measured next to the store's, over the same turns with the same questions."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How the questions are asked."""

    mode: str = "hybrid"
    fusion: str | None = None
    limit: int | None = None
    by_turn: bool = True
    """Whether the data set names turns; else sessions are what is to be found."""
    baseline: str | None = None

    def __post_init__(self) -> None:
        if self.baseline is not None and self.baseline not in BASELINES:
            raise InvalidInput(f"Unknown baseline {self.baseline!r}; choose {', '.join(BASELINES)}.")


def measure(
    conversations: Sequence[Conversation],
    asking: Asking,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    url: str | None = None,
) -> dict[str, Any]:
    """Ask every question of its own conversation; the measures, by category too, with latency and memory.

    With a `url` each conversation is a tenant of that server while it lasts.
    """
    tally, plain = Tally(), Tally()
    latencies: list[float] = []
    total = min(sum(len(c.questions) for c in conversations), asking.limit or sys.maxsize)
    for conversation in conversations:
        left = total - tally.questions
        if left <= 0:
            break
        with _opened(url) as mem:
            fill(mem, conversation)
            baseline = BASELINES[asking.baseline](conversation) if asking.baseline else None
            for question in conversation.questions[:left]:
                ranking, taken = _ask(mem, question, asking)
                latencies.append(taken)
                _count(tally, ranking, conversation, question, asking)
                if baseline:
                    _count(plain, baseline.ranking(question.text, DEPTH), conversation, question, asking)
                progress("questions", tally.questions, total)
    report = _report(tally, latencies, asking)
    return report | ({"baseline": _baseline_report(plain, asking)} if asking.baseline else {})


@contextmanager
def _opened(url: str | None) -> Iterator[Engram]:
    if url is None:
        with Engram.open(ephemeral=True) as mem:
            yield mem
        return
    from engram.store.postgres import tenants
    from engram.store.sources import random_hex

    tenant = f"bench-{random_hex(8)}"
    try:
        with Engram.open(url=url, tenant=tenant) as mem:
            yield mem
    finally:
        tenants.remove(url, tenant)


def fill(mem: Engram, conversation: Conversation) -> None:
    """Only what a real user's store would hold is indexed: who spoke, what, when. The data set's keys ride as metadata."""
    for number, session in enumerate(conversation.sessions):
        turns = [
            {"role": turn.speaker, "content": turn.text, "at": turn.at or session.at, "metadata": {"key": turn.key}}
            for turn in session.turns
        ]
        for start in range(0, len(turns), BATCH):
            mem.observe_batch(f"session-{number}", turns[start : start + BATCH])


def _ask(mem: Engram, question: Question, asking: Asking) -> tuple[list[str], float]:
    started = time.perf_counter()
    hits = mem.search(question.text, kinds=("event",), limit=DEPTH, mode=asking.mode, fusion=asking.fusion)
    return [hit.metadata["key"] for hit in hits], (time.perf_counter() - started) * 1000


def _count(
    tally: Tally, ranking: Sequence[str], conversation: Conversation, question: Question, asking: Asking
) -> None:
    sessions = sessions_in_order(ranking, conversation.session_of)
    wanted = sessions_in_order(question.evidence, conversation.session_of)
    if asking.by_turn:
        tally.add(question.category, ranking, question.evidence)
        tally.add(question.category, sessions, wanted, "session")
    else:
        tally.add(question.category, sessions, wanted)
        if question.turns:
            tally.add(question.category, ranking, question.turns, "turn")


def _by_category(tally: Tally, asking: Asking) -> dict[str, dict[str, float]]:
    """What each kind of data set is judged by, for every category: turns by share and any-hit, sessions by all-hit and any-hit."""
    shown = {
        name: tally.by_category(name) for name in (("fraction@10", "any@10") if asking.by_turn else ("all@5", "any@5"))
    }
    categories = next(iter(shown.values()))
    return {category: {name: means[category] for name, means in shown.items()} for category in categories}


def _baseline_report(tally: Tally, asking: Asking) -> dict[str, Any]:
    return {"name": asking.baseline, "measures": tally.means(), "by_category": _by_category(tally, asking)}


def _report(tally: Tally, latencies: Sequence[float], asking: Asking) -> dict[str, Any]:
    timed = latencies or [0.0]
    return {
        "questions": tally.questions,
        "mode": asking.mode,
        "fusion": asking.fusion or "default",
        "measures": tally.means(),
        "by_category": _by_category(tally, asking),
        "latency_ms": {name: percentile(timed, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
        "rss_mb": peak_memory(),
    }
