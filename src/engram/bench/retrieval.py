"""Measures how well the store finds: a data set's conversations become ledger events, and the rankings for its questions are measured."""

import math
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from engram.bench.dataset import DatasetConversation, Question
from engram.bench.figures import peak_memory, percentile
from engram.client import Engram
from engram.model.errors import InvalidInput
from engram.model.lazy import dataclass, field
from engram.store.protocol import Progress
from engram.text.tokens import query_terms, tokens

K1, B = 1.2, 0.75
"""The customary values, also used by SQLite's FTS5."""


class Bm25:
    """An inverted index over the turns of one conversation, by speaker and text, with the terms of the store's own index."""

    def __init__(self, conversation: DatasetConversation) -> None:
        turns = [turn for session in conversation.sessions for turn in session.turns]
        counts = [Counter(tokens(f"{turn.speaker}: {turn.text}")) for turn in turns]
        self._keys = [turn.key for turn in turns]
        self._lengths = [counted.total() for counted in counts]
        self._postings: Mapping[str, Sequence[tuple[int, int]]] = _postings(counts)

    def ranking(self, question: str, depth: int) -> list[str]:
        """The keys of the best turns, best first; ties in the order of the conversation."""
        scores = self.scores(question)
        return sorted((key for key in self._keys if key in scores), key=lambda key: -scores[key])[:depth]

    def scores(self, question: str) -> dict[str, float]:
        """The score of every turn that shares a term with the question, by key. Stop and question words do not count."""
        average = sum(self._lengths) / max(len(self._lengths), 1)
        found: dict[str, float] = defaultdict(float)
        for term in query_terms(question):
            postings = self._postings.get(term, ())
            idf = math.log(1 + (len(self._keys) - len(postings) + 0.5) / (len(postings) + 0.5))
            for place, count in postings:
                length = K1 * (1 - B + B * self._lengths[place] / average)
                found[self._keys[place]] += idf * count * (K1 + 1) / (count + length)
        return dict(found)


def _postings(counts: Sequence[Mapping[str, int]]) -> dict[str, list[tuple[int, int]]]:
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for place, counted in enumerate(counts):
        for term, count in counted.items():
            found[term].append((place, count))
    return dict(found)


CUTOFFS = (5, 10)


def any_hit(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """1 if one wanted key is among the first."""
    return float(not set(wanted).isdisjoint(ranking[:cut]))


def all_hit(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """1 if every wanted key is among the first."""
    return float(set(wanted).issubset(ranking[:cut]))


def fraction(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """The share of the wanted keys among the first."""
    keys = set(wanted)
    return len(keys.intersection(ranking[:cut])) / len(keys) if keys else 0.0


def ndcg(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """Discounted gain of the first, relative to the best possible order."""
    keys = set(wanted)
    gain = sum(_discount(place) for place, key in enumerate(ranking[:cut]) if key in keys)
    ideal = sum(_discount(place) for place in range(min(cut, len(keys))))
    return gain / ideal if ideal else 0.0


def reciprocal_rank(ranking: Sequence[str], wanted: Iterable[str], cut: int) -> float:
    """One divided by the rank of the first wanted key; 0 if none is among the first."""
    keys = set(wanted)
    return next((1 / place for place, key in enumerate(ranking[:cut], 1) if key in keys), 0.0)


def _discount(place: int) -> float:
    return 1 / math.log2(place + 2)


def sessions_in_order(ranking: Iterable[str], session_of: Mapping[str, str]) -> list[str]:
    """Sessions in the order of their best turn."""
    return list(dict.fromkeys(session_of[key] for key in ranking))


@dataclass(slots=True)
class Tally:
    """Means over questions, overall and by category."""

    _values: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, category: str, ranking: Sequence[str], wanted: Sequence[str], level: str = "") -> None:
        """Count one question; `level` (such as "session") separates measures of another ranking."""
        prefix = f"{level} " if level else ""
        for cut in CUTOFFS:
            for name, measure in (("any", any_hit), ("all", all_hit), ("fraction", fraction)):
                self._note(category, f"{prefix}{name}@{cut}", measure(ranking, wanted, cut))
        self._note(category, f"{prefix}ndcg@10", ndcg(ranking, wanted, 10))
        self._note(category, f"{prefix}mrr@10", reciprocal_rank(ranking, wanted, 10))

    def _note(self, category: str, measure: str, value: float) -> None:
        self._values.setdefault(measure, {}).setdefault(category, []).append(value)

    def means(self) -> dict[str, float]:
        """Each measure over all questions."""
        return {name: _mean(value for values in by.values() for value in values) for name, by in self._values.items()}

    def by_category(self, measure: str) -> dict[str, float]:
        """One measure, category by category."""
        return {category: _mean(values) for category, values in sorted(self._values.get(measure, {}).items())}

    @property
    def questions(self) -> int:
        """How many questions were counted."""
        first = next(iter(self._values.values()), {})
        return sum(len(values) for values in first.values())


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found) if found else 0.0


DEPTH = 50
"""Number of hits requested: enough to distinguish ten sessions."""
ADD_BATCH_SIZE = 2_000
BASELINES = {"bm25": Bm25}
"""Rankings that can be measured next to the store's, over the same turns with the same questions."""


@dataclass(frozen=True, slots=True)
class BenchQuestion:
    """Options for asking the questions."""

    mode: str = "hybrid"
    fusion: str | None = None
    limit: int | None = None
    by_turn: bool = True
    """Whether the data set names turns; otherwise sessions are the targets."""
    baseline: str | None = None

    def __post_init__(self) -> None:
        if self.baseline is not None and self.baseline not in BASELINES:
            raise InvalidInput(f"Unknown baseline {self.baseline!r}; choose {', '.join(BASELINES)}.")


def measure(
    conversations: Sequence[DatasetConversation],
    asking: BenchQuestion,
    progress: Progress = lambda *_: None,
    url: str | None = None,
) -> dict[str, Any]:
    """Ask every question of its own conversation. Returns the measures, also by category, with latency and memory.

    With a `url`, each conversation is a temporary tenant of that server.
    """
    tally, plain = Tally(), Tally()
    latencies: list[float] = []
    total = min(sum(len(c.questions) for c in conversations), asking.limit or sys.maxsize)
    for conversation in conversations:
        left = total - tally.questions
        if left <= 0:
            break
        with _open_tenant(url) as mem:
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
def _open_tenant(url: str | None) -> Iterator[Engram]:
    if url is None:
        with Engram.open(ephemeral=True, time_zone="UTC") as mem:
            yield mem
        return
    from engram.store.defaults import random_hex
    from engram.store.postgres import tenants

    tenant = f"bench-{random_hex(8)}"
    try:
        with Engram.open(url=url, tenant=tenant, time_zone="UTC") as mem:
            yield mem
    finally:
        tenants.remove(url, tenant)


def fill(mem: Engram, conversation: DatasetConversation) -> None:
    """Index only what a real user's store would have: speaker, text and time.

    The data set's keys are stored as metadata.
    """
    for number, session in enumerate(conversation.sessions):
        turns = [
            {"role": turn.speaker, "content": turn.text, "at": turn.at or session.at, "metadata": {"key": turn.key}}
            for turn in session.turns
        ]
        for start in range(0, len(turns), ADD_BATCH_SIZE):
            mem.observe_batch(f"session-{number}", turns[start : start + ADD_BATCH_SIZE])


def _ask(mem: Engram, question: Question, asking: BenchQuestion) -> tuple[list[str], float]:
    started = time.perf_counter()
    hits = mem.search(
        question.text,
        wordings=question.wordings,
        kinds=("event",),
        limit=DEPTH,
        mode=asking.mode,
        fusion=asking.fusion,
    )
    return [hit.metadata["key"] for hit in hits], (time.perf_counter() - started) * 1000


def _count(
    tally: Tally, ranking: Sequence[str], conversation: DatasetConversation, question: Question, asking: BenchQuestion
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


def _by_category(tally: Tally, asking: BenchQuestion) -> dict[str, dict[str, float]]:
    """The measures of each kind of data set, by category: turns by share and any-hit, sessions by all-hit and any-hit."""
    shown = {
        name: tally.by_category(name) for name in (("fraction@10", "any@10") if asking.by_turn else ("all@5", "any@5"))
    }
    categories = next(iter(shown.values()))
    return {category: {name: means[category] for name, means in shown.items()} for category in categories}


def _baseline_report(tally: Tally, asking: BenchQuestion) -> dict[str, Any]:
    return {"name": asking.baseline, "measures": tally.means(), "by_category": _by_category(tally, asking)}


def _report(tally: Tally, latencies: Sequence[float], asking: BenchQuestion) -> dict[str, Any]:
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
