"""Synthetic memories for timing: words of the bundled vocabulary at the frequencies natural text has. The same on every run."""

import random
from collections.abc import Iterator
from importlib import resources
from itertools import accumulate

WORDS = 20_000
"""How many different words there are."""
SCOPES = ("global", "user", "project:acme", "project:acme/api", "project:beta")
TYPES = ("factual", "behavioral", "procedural", "preference", "convention")
_ANNOUNCES_A_SECRET = frozenset(
    ("backup", "codes", "crypto", "key", "keys", "ledger", "login", "mnemonic", "password", "passwords", "phrase", "pin",
     "secret", "secrets", "seed", "token", "tokens", "wallet")
)  # fmt: skip
"""Before random words each of these now and then reads like a password or a recovery phrase, which no store takes."""


def statements(count: int, seed: int = 1) -> Iterator[str]:
    """Statements of 12 to 24 words, Zipf-distributed."""
    rng = random.Random(seed)
    words = _words()
    weights = list(accumulate(1 / (rank + 10) for rank in range(len(words))))
    for _ in range(count):
        yield " ".join(rng.choices(words, cum_weights=weights, k=rng.randint(12, 24)))


def memories(count: int, seed: int = 1) -> Iterator[dict[str, str]]:
    """The same as `add_batch` takes them, over a few scopes and types."""
    for number, statement in enumerate(statements(count, seed)):
        yield {
            "statement": statement,
            "scope": SCOPES[number % len(SCOPES)],
            "type": TYPES[number % len(TYPES)],
        }


def questions(count: int, population: int, seed: int = 2) -> list[str]:
    """Questions made of six words of some memory each."""
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
    return plain[:WORDS]
