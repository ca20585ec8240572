"""Measures how fast the store is, each figure next to its floor measured in the same run."""

import os
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from importlib import resources
from itertools import accumulate
from pathlib import Path
from typing import Any

from engram.bench import figures as floors
from engram.bench.figures import Figure
from engram.client import Engram
from engram.model.errors import InvalidInput
from engram.store.protocol import Progress

VOCABULARY_SIZE = 20_000
"""Number of distinct words."""
SCOPES = ("global", "user", "project:acme", "project:acme/api", "project:beta")
TYPES = ("factual", "behavioral", "procedural", "preference", "convention")
_ANNOUNCES_A_SECRET = frozenset(
    ("backup", "codes", "crypto", "key", "keys", "ledger", "login", "mnemonic", "password", "passwords", "phrase", "pin",
     "secret", "secrets", "seed", "token", "tokens", "wallet")
)  # fmt: skip
"""Words that, before random words, sometimes read like a password or a recovery phrase, which no store accepts."""


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """Statements of 12 to 24 words, Zipf-distributed."""
    rng = random.Random(seed)
    words = _words()
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    for _ in range(count):
        yield " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(12, 24)))


def memories(count: int, seed: int = 1) -> Iterator[dict[str, str]]:
    """The statements as `add_batch` takes them, over a few scopes and types."""
    for number, statement in enumerate(statements(count, seed)):
        yield {
            "statement": statement,
            "scope": SCOPES[number % len(SCOPES)],
            "type": TYPES[number % len(TYPES)],
        }


def questions(count: int, population: int, seed: int = 2) -> list[str]:
    """Questions made of six words of a memory each."""
    rng = random.Random(seed)
    wanted = sorted(rng.sample(range(population), min(count, population)))
    asked, pick = [], iter(wanted)
    target = next(pick, None)
    for number, statement in enumerate(statements(population)):
        if number == target:
            words = statement.split()
            asked.append(" ".join(rng.sample(words, min(6, len(words)))))
            target = next(pick, None)
            if target is None:
                break
    return asked


def _words() -> list[str]:
    text = resources.files("engram.embedding").joinpath("data/vocabulary.txt").read_text("utf-8")
    plain = [word for word in text.split() if word.isascii() and word.isalpha() and len(word) > 2]
    plain = [word for word in plain if word not in _ANNOUNCES_A_SECRET]
    rng = random.Random(0)
    rng.shuffle(plain)
    return plain[:VOCABULARY_SIZE]


ROUNDS = 60
LEARNS = 40
COLD_ROUNDS = 7
ADD_BATCH_SIZE = 5_000
MAX_STORE_SIZE = 1_000_000


def parse_sizes(text: str) -> list[int]:
    """`1000,10000` as numbers. Raises `InvalidInput` for anything else."""
    try:
        sizes = [int(part.replace("_", "")) for part in text.split(",")]
    except ValueError:
        raise InvalidInput(f"Cannot read --n {text!r}; give numbers separated by commas, such as 1000,10000") from None
    if not all(100 <= size <= MAX_STORE_SIZE for size in sizes):
        raise InvalidInput(f"--n takes sizes from 100 to {MAX_STORE_SIZE:,}")
    return sizes


def measure(count: int, *, cold: bool = True, progress: Progress = lambda *_: None) -> dict[str, Any]:
    """Fill a fresh store with `count` memories and time everything a user waits for."""
    folder = Path(tempfile.mkdtemp(prefix="engram-bench-"))
    try:
        return _measure(folder, count, cold, progress)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measure(folder: Path, count: int, cold: bool, progress: Progress) -> dict[str, Any]:
    figures: list[Figure] = []
    with Engram.open(folder / "home", cache=folder / "cache", directory=folder) as mem:
        figures.append(fill(mem, count, progress))
        figures.append(Figure("bare creation of small files", floors.files_floor(folder), "files/s"))
        figures += _serve(mem, folder, count)
        figures.append(_rebuild(mem, progress))
    if cold:
        figures += _cold(folder)
    return {"memories": count, "figures": [asdict(figure) for figure in figures]}


def fill(
    mem: Engram, count: int, progress: Progress, corpus: Callable[[int], Iterable[dict[str, str]]] = memories
) -> Figure:
    """Add the memories in large batches. Returns how many are added per second."""
    batch: list[dict[str, str]] = []
    done, seconds = 0, 0.0
    for item in corpus(count):
        batch.append(item)
        if len(batch) == ADD_BATCH_SIZE or done + len(batch) == count:
            started = time.perf_counter()
            mem.add_batch(batch)
            seconds += time.perf_counter() - started
            done, batch = done + len(batch), []
            progress("adding", done, count)
    return Figure("add_batch, durable", count / seconds, "memories/s")


def _serve(mem: Engram, folder: Path, count: int) -> list[Figure]:
    asked = questions(ROUNDS, count)
    for question in asked[:5]:
        mem.recall(question, scope=SCOPES)
    recall = floors.samples_ms(lambda i: mem.recall(asked[i % len(asked)], scope=SCOPES), ROUNDS)
    rss = floors.peak_memory()  # before the floor allocates its own matrix
    assert mem.home is not None, "measured on a store of files"
    floor = floors.search_floor(count, mem.home.index / "index.db", _prune_queries(mem, asked))
    recall_p50 = floors.percentile(recall, 0.5)
    inject = floors.samples_ms(lambda i: mem.inject(asked[i % len(asked)], scope=SCOPES), ROUNDS)
    new = list(statements(LEARNS, seed=count + 7))
    learn = floors.samples_ms(lambda i: mem.learn(new[i], scope="project:acme"), LEARNS)
    fsync = floors.write_floor(folder)
    return [
        _figure_of_times("recall, hybrid, embedding included", recall, floor, "scan + FTS5"),
        _figure_of_times("learn, durable, all gates", learn, recall_p50, "recall"),
        Figure("append + fsync", fsync, "ms"),
        _figure_of_times("inject", inject, recall_p50, "recall"),
        Figure("peak RSS while serving", rss, "MB"),
    ]


def _figure_of_times(name: str, samples: list[float], floor: float, against: str) -> Figure:
    p50 = floors.percentile(samples, 0.5)
    p95, p99 = floors.percentile(samples, 0.95), floors.percentile(samples, 0.99)
    return Figure(f"{name} ÷ {against}", p50, "ms", p95, p99, floor, p50 / floor)


def _prune_queries(mem: Engram, asked: list[str]) -> list[str]:
    """The questions as the FTS5 queries the store itself would run."""
    from engram.text.tokens import prune_terms, query_terms

    found = []
    for question in asked:
        terms = prune_terms(dict(mem.store.frequencies(query_terms(question))))
        found.append(" OR ".join(f'"{term}"' for term in terms) or '"nothing"')
    return found


def _rebuild(mem: Engram, progress: Progress) -> Figure:
    started = time.perf_counter()
    mem.rebuild_index(progress)
    return Figure("rebuild of the index", time.perf_counter() - started, "s")


def _cold(folder: Path) -> list[Figure]:
    """Time whole processes, as a person at a shell or a hook pays for them."""
    env = {**os.environ, "ENGRAM_HOME": str(folder / "home"), "ENGRAM_CACHE": str(folder / "cache")}
    # An installed package has its byte code; a checkout creates it with the first run, unless this prevents it.
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    env.pop("ENGRAM_URL", None)
    bare = floors.start_floor()
    question = "how do we deploy the api to production"
    engram = [sys.executable, "-P", "-m", "engram"]
    floors.process_ms([*engram, "recall", question, "--json"], 1, env)
    recall = floors.process_ms([*engram, "recall", question, "--json"], COLD_ROUNDS, env)
    hook = floors.process_ms([*engram, "hook", "recall", question], COLD_ROUNDS, env)
    return [
        Figure("bare Python start", bare, "ms"),
        Figure("cold `engram recall`, hybrid ÷ bare start", recall, "ms", floor=bare, ratio=recall / bare),
        Figure("cold `engram hook recall`, keyword ÷ bare start", hook, "ms", floor=bare, ratio=hook / bare),
    ]
