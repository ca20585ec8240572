"""Every way to write to a store, each as one operation that says what it did once it has returned."""

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from engram import Engram
from engram.store.files.store.backend import FilesStore
from tests.homes import home_of

Ack = dict[str, Any]
_ANIMALS = ("otter", "heron", "lynx", "badger", "osprey", "marten", "stoat", "plover", "viper", "newt")


def sentence(n: int) -> str:
    """A statement no other number has, far from being a near duplicate of another."""
    chosen = random.Random(n)
    words = " ".join(chosen.choice(_ANIMALS) + str(chosen.randrange(1000)) for _ in range(6))
    return f"Entry {n} names {words}"


def _some(mem: Engram, n: int) -> str:
    known = [m.id for m in mem.list(limit=None, scope="everywhere") if not m.pinned]
    return sorted(known)[n % max(1, len(known))]  # IndexError if only pinned ones are left


def learn(mem: Engram, n: int) -> Ack:
    decision = mem.learn(sentence(n), scope="project:faults")
    assert decision.memory is not None, decision
    return {"made": {decision.memory.id: sentence(n)}}


def add(mem: Engram, n: int) -> Ack:
    return {"made": {mem.add(sentence(n), tags=["t"], metadata={"n": n}).id: sentence(n)}}


def add_batch(mem: Engram, n: int) -> Ack:
    texts = [f"{sentence(n)} part {i}" for i in range(4)]
    return {"made": {m.id: m.statement for m in mem.add_batch([{"statement": text} for text in texts])}}


def update(mem: Engram, n: int) -> Ack:
    target = _some(mem, n)
    return {"changed": {target: mem.update(target, statement=sentence(n)).statement}}


def forget(mem: Engram, n: int) -> Ack:
    target = _some(mem, n)
    mem.forget(target)
    return {"retired": [target]}


def rate(mem: Engram, n: int) -> Ack:
    target = _some(mem, 0)
    mem.feedback(target, "positive")
    return {"rated": target}


def derive(mem: Engram, n: int) -> Ack:
    known = mem.get(_some(mem, n))
    decision = mem.learn(known.statement, scope=known.scope, session=f"S-{n}")
    return {"derived": known.id, "outcome": decision.outcome}


def session(mem: Engram, n: int) -> Ack:
    with mem.session(f"{sentence(n % 5)} once more", scope="project:faults", budget=90) as running:
        pass
    return {"session": running.id}


def observe(mem: Engram, n: int) -> Ack:
    items = [{"role": "user", "content": f"{sentence(n)} said {i}", "key": f"{n}-{i}"} for i in range(3)]
    return {"observed": {event.id: event.content for event in mem.observe_batch("watched", items)}}


def purge(mem: Engram, n: int) -> Ack:
    target = _some(mem, n)
    words = mem.get(target).statement
    mem.forget(target, purge=True)
    return {"purged": {target: words}}


def edit(mem: Engram, n: int) -> Ack:
    """A person changes a file; Engram takes it in."""
    target = _some(mem, n)
    store = mem.store
    assert isinstance(store, FilesStore)
    place = store.context.index.db.execute("SELECT path FROM places WHERE id = ?", (target,)).fetchone()[0]
    path = store.context.path(place)
    new = sentence(n)
    # As editors save that must not lose a file: killed in between, what a person had written is still there.
    saved = path.with_name(f".{path.name}.swp")
    saved.write_text(path.read_text("utf-8").replace(mem.get(target).statement, new), "utf-8")
    saved.replace(path)
    mem.upkeep.sync()
    return {"changed": {target: new}}


def split(mem: Engram, n: int) -> Ack:
    """A file of many, copied from elsewhere, of which one is changed."""
    folder = Path(home_of(mem).engrams, "shared")
    folder.mkdir(exist_ok=True)
    ids = [f"ENG-2020-0101-{n:03d}{i}" for i in range(2)]
    lines = [f"- id: {i}\n  statement: {sentence(n)} in {i}\n" for i in ids]
    (folder / f"many-{n}.yaml").write_text("".join(lines), "utf-8")
    mem.upkeep.sync()
    mem.update(ids[1], rationale="because")
    return {"made": {i: f"{sentence(n)} in {i}" for i in ids}}


def undo(mem: Engram, n: int) -> Ack:
    target = _some(mem, 1)
    mem.update(target, rationale=f"reason {n}")
    mem.undo(target)
    return {}


def rebuild(mem: Engram, n: int) -> Ack:
    mem.rebuild_index()
    return {}


def prune(mem: Engram, n: int) -> Ack:
    from datetime import timedelta

    mem.store.prune(mem._clock() + timedelta(days=400), 100, 0, 100, dry_run=False)
    return {}


OPERATIONS: Mapping[str, Callable[[Engram, int], Ack]] = {
    operation.__name__: operation
    for operation in (
        learn, add, add_batch, update, forget, rate, derive, session, observe, purge, edit, split, undo, rebuild, prune,
    )
}  # fmt: skip
