"""Files and Postgres rank alike: the same store, the same questions, the same first ten in every mode."""

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from engram import Engram
from engram.model.hit import Hit
from tests.backends import OnFiles, OnPostgres
from tests.clock import Clock
from tests.postgres.server import Server
from tests.properties import share

MEMORIES, QUESTIONS, FIRST = 300, share(40), 10
SAME_SCORE = 2e-3
"""Vectors are kept with half precision and summed in another order; closer than this counts as a tie."""
SAME_RANK = 0.1
"""Under `rrf` places count and not scores: two that tie may change places, which moves a score by this much at most."""
SUBJECTS = ("the api", "the web shop", "the billing job", "the mobile app", "the data lake", "the search index", "Klaus",
            "the release train", "the staging cluster", "the on-call phone")  # fmt: skip
VERBS = ("deploys", "restarts", "waits for", "depends on", "was moved to", "must never touch", "reports to", "is owned by",
         "talks to", "replaces")  # fmt: skip
OBJECTS = ("the database migration", "the red button", "Frankfurt", "the payment gateway", "a nightly cron", "the cache",
           "the legal team", "port 8080", "the feature flags", "the old monolith", "the queue", "Lisbon")  # fmt: skip
WHEN = (
    "on Mondays",
    "after midnight",
    "before every release",
    "during the freeze",
    "when traffic is high",
    "by hand",
    "",
)


def drafts(chance: random.Random) -> list[dict[str, Any]]:
    """Memories that share their words unevenly, as real ones do."""
    made = []
    for n in range(MEMORIES):
        subject, verb = chance.choice(SUBJECTS), chance.choice(VERBS)
        statement = f"{subject} {verb} {chance.choice(OBJECTS)} {chance.choice(WHEN)} (case {n})"
        made.append(
            {
                "statement": statement,
                "situation": chance.choice(("", f"working on {chance.choice(SUBJECTS)}")),
                "rationale": chance.choice(("", f"because of {chance.choice(OBJECTS)}")),
                "tags": chance.sample(("ops", "people", "legal", "speed"), chance.randint(0, 2)),
                "cues": chance.choice(((), (f"who runs {chance.choice(OBJECTS)}",))),
                "scope": chance.choice(("global", "project:acme", "project:acme/api")),
                "confidence": chance.randint(1, 10) / 10,
                "importance": chance.randint(1, 10) / 10,
            }
        )
    return made


def questions(chance: random.Random) -> list[str]:
    """Questions of one to six words of theirs, and a few that share none."""
    words = " ".join((*SUBJECTS, *VERBS, *OBJECTS, *WHEN)).split()
    asked = [" ".join(chance.sample(words, chance.randint(1, 6))) for _ in range(QUESTIONS - 4)]
    return [*asked, "who is responsible for payments", "outage in the evening", "where did the office go", "case 17"]


@pytest.fixture(scope="module")
def both(
    tmp_path_factory: pytest.TempPathFactory, shared_database: str, postgres_server: Server
) -> Iterator[tuple[Engram, Engram]]:
    """The same memories on files and on Postgres."""
    folder: Path = tmp_path_factory.mktemp("parity")
    backends = (OnFiles(Clock(), folder), OnPostgres(Clock(), shared_database, "parity", postgres_server))
    clients = [backend.client() for backend in backends]
    for client in clients:
        client.add_batch(drafts(random.Random(7)))
        client.observe_batch("talk", [{"role": "Ann", "content": text} for text in questions(random.Random(8))])
    yield clients[0], clients[1]
    for backend in backends:
        backend.close()


def assert_alike(files: Sequence[Hit], server: Sequence[Hit], question: str, tie: float) -> None:
    """The same scores in the same places, and the same documents wherever scores are not tied."""
    here, there = [hit.score for hit in files], [hit.score for hit in server]
    assert there == pytest.approx(here, abs=tie), question
    for place, (one, other) in enumerate(zip(files, server, strict=True)):
        if one.text != other.text:
            tied = [hit.text for hit in files if abs(hit.score - other.score) <= tie]
            at_the_cut = abs(files[-1].score - other.score) <= tie
            assert other.text in tied or at_the_cut, f"{question!r}: place {place + 1}"


@pytest.mark.parametrize(
    "options",
    [
        {"mode": "hybrid"},
        {"mode": "hybrid", "fusion": "rrf"},
        {"mode": "keyword"},
        {"mode": "semantic"},
        {"mode": "hybrid", "scope": "project:acme", "tags": ["ops"]},
        {"mode": "hybrid", "kinds": ("event",)},
        {"mode": "keyword", "kinds": ("memory", "event")},
    ],
    ids=lambda options: " ".join(str(value) for value in options.values()),
)
def test_the_first_ten_are_the_same(both: tuple[Engram, Engram], options: dict[str, Any]) -> None:
    answered = 0
    for question in questions(random.Random(9)):
        files, server = (mem.search(question, limit=FIRST, **options) for mem in both)
        assert len(files) == len(server), question
        assert_alike(files, server, question, SAME_RANK if options.get("fusion") == "rrf" else SAME_SCORE)
        assert files.pruned_terms == server.pruned_terms
        answered += bool(files)
    assert answered > QUESTIONS // 2


def test_what_is_injected_is_the_same_but_for_what_only_the_task_finds(both: tuple[Engram, Engram]) -> None:
    """Files also have the vector of each memory's task, so that a memory found by it alone may take another one's place."""
    for task in ("deploy the api before every release", "move the billing job to Lisbon", "call Klaus"):
        files, server = (mem.inject(task, scope="project:acme", budget=800) for mem in both)
        added = [item for item in files.items if item.memory.id not in server.ids]
        assert {item.reason for item in added} <= {"matched by task"}, task
        assert len(set(server.ids) - set(files.ids)) <= len(added) < len(files.ids) / 2, task
