"""How well the store finds: a data set's conversations go in as ledger events, its questions are asked, the ranking is measured."""

import resource
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from engram.bench.dataset import Conversation, Question
from engram.bench.floors import percentile
from engram.bench.measures import Tally, sessions_in_order
from engram.client import Engram

DEPTH = 50
"""Hits asked for: enough that ten sessions can be told apart."""
BATCH = 2_000


@dataclass(frozen=True, slots=True)
class Asking:
    """How the questions are asked."""

    mode: str = "hybrid"
    fusion: str | None = None
    limit: int | None = None
    by_turn: bool = True
    """Whether the data set names turns; else sessions are what is to be found."""


def measure(
    conversations: Sequence[Conversation],
    asking: Asking,
    progress: Callable[[str, int, int], None] = lambda *_: None,
    url: str | None = None,
) -> dict[str, Any]:
    """Ask every question of its own conversation; the measures, by category too, with latency and memory.

    With a `url` each conversation is a tenant of that server while it lasts.
    """
    tally = Tally()
    latencies: list[float] = []
    total = min(sum(len(c.questions) for c in conversations), asking.limit or sys.maxsize)
    for conversation in conversations:
        left = total - tally.questions
        if left <= 0:
            break
        with _opened(url) as mem:
            fill(mem, conversation)
            for question in conversation.questions[:left]:
                latencies.append(_ask(mem, conversation, question, asking, tally))
                progress("questions", tally.questions, total)
    return _report(tally, latencies, asking)


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
            {"role": turn.speaker, "content": turn.text, "at": session.at, "metadata": {"key": turn.key}}
            for turn in session.turns
        ]
        for start in range(0, len(turns), BATCH):
            mem.observe_batch(f"session-{number}", turns[start : start + BATCH])


def _ask(mem: Engram, conversation: Conversation, question: Question, asking: Asking, tally: Tally) -> float:
    started = time.perf_counter()
    hits = mem.search(question.text, kinds=("event",), limit=DEPTH, mode=asking.mode, fusion=asking.fusion)
    taken = (time.perf_counter() - started) * 1000
    ranking = [hit.metadata["key"] for hit in hits]
    sessions = sessions_in_order(ranking, conversation.session_of)
    wanted = sessions_in_order(question.evidence, conversation.session_of)
    if asking.by_turn:
        tally.add(question.category, ranking, question.evidence)
        tally.add(question.category, sessions, wanted, "session")
    else:
        tally.add(question.category, sessions, wanted)
    return taken


def _report(tally: Tally, latencies: Sequence[float], asking: Asking) -> dict[str, Any]:
    rss = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 * 1024 if sys.platform == "darwin" else 1024)
    timed = latencies or [0.0]
    return {
        "questions": tally.questions,
        "mode": asking.mode,
        "fusion": asking.fusion or "default",
        "measures": tally.means(),
        "by_category": tally.by_category("fraction@10" if asking.by_turn else "all@5"),
        "latency_ms": {name: percentile(timed, share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))},
        "rss_mb": rss,
    }
