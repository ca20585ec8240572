"""After any sequence of operations, a rebuilt index equals the one that was kept up to date."""

import random
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from engram import Engram
from engram.model.errors import EngramError
from tests.faults.consistency import assert_consistent, scratch, store_of
from tests.faults.workers.operations import OPERATIONS, sentence
from tests.properties import examples

Step = Callable[[Engram, random.Random], object]
TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=("Cs", "Cc")), min_size=1, max_size=60)


def _ids(mem: Engram) -> list[str]:
    return sorted(memory.id for memory in mem.list(limit=None, status="any"))


def _add(mem: Engram, chosen: random.Random) -> object:
    scope = chosen.choice(["global", "user", "project:a", "project:a/b", "session:s"])
    seen = sorted(memory.id for memory in mem.list(limit=None, status="any", scope=scope))
    links = [{"target": target, "type": "semantic"} for target in chosen.sample(seen, min(2, len(seen)))]
    return mem.add(
        sentence(chosen.randrange(10**6)),
        scope=scope,
        tags=chosen.sample(["x", "Y", "z"], 2),
        aliases=[f"alias-{chosen.randrange(10**6)}"],
        anchors=[{"path": f"src/{chosen.randrange(5)}.py", "snippet": "def f"}],
        associations=links,
        domain="a/b",
        pinned=chosen.random() < 0.2,
    )


def _change(mem: Engram, chosen: random.Random) -> object:
    fields: tuple[dict[str, Any], ...] = (
        {"statement": sentence(chosen.randrange(10**6))},
        {"rationale": "why"},
        {"tags": ["q"]},
        {"new_scope": "project:moved"},
        {"status": "archived"},
        {"valid_until": "2030-01-01"},
    )
    return mem.update(chosen.choice(_ids(mem)), **chosen.choice(fields))


def _file(mem: Engram, chosen: random.Random) -> Path:
    rows = store_of(mem).context.index.db.execute("SELECT path FROM places ORDER BY path").fetchall()
    return store_of(mem).context.path(chosen.choice(rows)[0])


def _edit(mem: Engram, chosen: random.Random) -> object:
    path = _file(mem, chosen)
    path.write_text(path.read_text("utf-8").replace("names", f"renames {chosen.randrange(99)}"), "utf-8")
    return mem.upkeep.sync()


def _remove(mem: Engram, chosen: random.Random) -> object:
    _file(mem, chosen).unlink()
    return mem.upkeep.sync()


def _move(mem: Engram, chosen: random.Random) -> object:
    path = _file(mem, chosen)
    path.rename(path.with_name(f"moved-{chosen.randrange(10**6)}.yaml"))
    return mem.upkeep.sync()


def _use(mem: Engram, chosen: random.Random) -> object:
    with mem.session(sentence(chosen.randrange(10**6))) as session:
        session.observe("user", sentence(chosen.randrange(10**6)), key=str(chosen.randrange(5)))
        session.feedback(chosen.choice(_ids(mem)), chosen.choice(["positive", "negative", "neutral"]))
    return session


def _retire(mem: Engram, chosen: random.Random) -> object:
    return mem.forget(chosen.choice(_ids(mem)), purge=chosen.random() < 0.4)


def _undo(mem: Engram, chosen: random.Random) -> object:
    return mem.undo(chosen.choice(_ids(mem)))


def _prune(mem: Engram, chosen: random.Random) -> object:
    mem.upkeep.fold()
    return mem.store.prune(mem._clock() + timedelta(days=60), 30, 20, 30, dry_run=False)


STEPS: tuple[Step, ...] = (
    _add, _add, _change, _edit, _remove, _move, _use, _retire, _undo, _prune,
    lambda mem, chosen: OPERATIONS["split"](mem, chosen.randrange(10**6)),
    lambda mem, chosen: OPERATIONS["add_batch"](mem, chosen.randrange(10**6)),
    lambda mem, chosen: OPERATIONS["derive"](mem, chosen.randrange(10**6)),
    lambda mem, chosen: mem.rebuild_index(),
    lambda mem, chosen: mem.recall(sentence(chosen.randrange(10**6))),
)  # fmt: skip


@pytest.mark.parametrize("seed", [*range(5), *(pytest.param(seed, marks=pytest.mark.heavy) for seed in range(5, 16))])
def test_any_sequence_of_operations_leaves_an_index_equal_to_a_new_one(seed: int) -> None:
    chosen = random.Random(seed)
    with scratch() as folder:
        home, cache = folder / "home", folder / "cache"
        with Engram.open(home, cache=cache, directory=home) as mem:
            for _ in range(3):
                _add(mem, chosen)
            for _ in range(25):
                if not mem.list():
                    _add(mem, chosen)
                try:
                    chosen.choice(STEPS)(mem, chosen)
                except (EngramError, IndexError) as refusal:
                    assert str(refusal)
        assert_consistent(home, cache, edited=True)


@examples(15, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.tuples(TEXTS, st.lists(TEXTS, max_size=3), TEXTS), min_size=1, max_size=5))
def test_any_text_leaves_an_index_equal_to_a_new_one(given_texts: list[tuple[str, list[str], str]]) -> None:
    with scratch() as folder:
        home, cache = folder / "home", folder / "cache"
        with Engram.open(home, cache=cache, directory=home) as mem:
            for statement, tags, rationale in given_texts:
                try:
                    memory = mem.add(statement, tags=tags, rationale=rationale)
                except EngramError:
                    continue
                assert mem.get(memory.id).statement
                mem.observe("talk", "user", statement)
        assert_consistent(home, cache)
