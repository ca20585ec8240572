"""Walks over the links of the index, breadth-first.

A memory may have thousands of links of which a walk wants the heaviest few. So each one's links are read in that order, those of
a whole level are merged as they are needed, and only the memories are looked at that would be next.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from typing import NamedTuple

from engram.model.relations import HEAVIEST, LIGHTEST
from engram.store.files.index.filters import where
from engram.store.protocol import Step
from engram.store.walks import Hops

LONGEST_CHAIN = 64
"""Successors of a superseded memory that are looked at; only a damaged store has more."""

# One statement for each memory: for a short sorted beginning of many links SQLite is ten times faster than with a window.
_LINKS = """
SELECT -max({lightest}, min({heaviest}, l.weight)), l.{there}, l.type FROM links l
WHERE l.{here} = ? AND l.weight > 0 AND l.weight >= ? {typed} ORDER BY l.weight DESC, l.{there}, l.type LIMIT ? OFFSET ?
"""
_PASSING = "SELECT d.id FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value WHERE {condition}"
_SUCCESSORS = """
WITH RECURSIVE later (origin, id, hops) AS (
    SELECT j.value, json_extract(r.record, '$.superseded_by'), 1 FROM json_each(?) j
    CROSS JOIN docs d ON d.id = j.value CROSS JOIN records r ON r.n = d.n WHERE d.status = 'superseded'
    UNION ALL
    SELECT l.origin, json_extract(r.record, '$.superseded_by'), l.hops + 1 FROM later l
    CROSS JOIN docs d ON d.id = l.id CROSS JOIN records r ON r.n = d.n WHERE l.hops < {longest}
)
SELECT l.origin, d.id FROM later l CROSS JOIN docs d ON d.id = l.id WHERE {condition} ORDER BY l.hops DESC
"""
_PREDECESSORS = """
WITH RECURSIVE earlier (heir, id) AS (
    SELECT j.value, j.value FROM json_each(?) j
    UNION
    SELECT e.heir, s.value FROM earlier e CROSS JOIN docs d ON d.id = e.id CROSS JOIN records r ON r.n = d.n
    CROSS JOIN json_each(r.record, '$.supersedes') s
)
SELECT e.id, e.heir FROM earlier e CROSS JOIN docs d ON d.id = e.id
WHERE e.id <> e.heir AND d.status = 'superseded' AND NOT ({condition})
"""


Hop = tuple[float, str, str]
"""A link as a walk takes it: how light it is, where it leads, its relation. Sorted, the heaviest comes first."""


class Onward(NamedTuple):
    """A step that could be taken next, in the order in which they are."""

    lightness: float
    path: tuple[str, ...]
    id: str
    type: str
    backward: bool
    before: Step

    def taken(self, memory_id: str) -> Step:
        """The step, to this memory."""
        return Step(
            self.before.seed,
            memory_id,
            self.before.depth + 1,
            (*self.path, memory_id),
            (*self.before.types, self.type),
            -self.lightness,
            (*self.before.forward, not self.backward),
        )


@dataclass(slots=True)
class _Places:
    """Where links lead: to the memory they name, to its successor, or nowhere. Each is looked up once in a walk."""

    db: sqlite3.Connection
    hops: Hops
    known: dict[str, str | None] = field(default_factory=dict)

    def look_up(self, ids: Iterable[str]) -> None:
        new = sorted({i for i in ids if i not in self.known})
        if not new:
            return
        condition, values = where(self.hops.filters)
        passing = self.db.execute(_PASSING.format(condition=condition), (json.dumps(new), *values))
        self.known |= dict.fromkeys(new) | {i: i for (i,) in passing}
        lost = [i for i in new if self.known[i] is None]
        if lost:
            successors = _SUCCESSORS.format(condition=condition, longest=LONGEST_CHAIN)
            # The nearest successor comes last, and so stays.
            self.known |= dict(self.db.execute(successors, (json.dumps(lost), *values)).fetchall())


@dataclass(slots=True)
class _Seed:
    """One seed's walk: what it reached, and what its next level may be."""

    seen: set[str]
    front: list[Step]
    wanted: int
    found: list[Step] = field(default_factory=list)
    ahead: Iterator[Onward] = field(default_factory=lambda: iter(()))
    offered: list[Onward] = field(default_factory=list)
    reached: list[Step] = field(default_factory=list)

    def begin(self, links: "_Links") -> None:
        """Turn to the next level."""
        self.ahead = merge(*(onward for step in self.front for onward in links.onward(step)))
        self.reached = []

    def offer(self) -> list[Onward]:
        """The next few steps, as many as are still wanted; none where the level is at its end."""
        missing = self.wanted - len(self.found) - len(self.reached)
        fresh = (onward for onward in self.ahead if onward.id not in self.seen)
        self.offered = list(islice(fresh, missing)) if missing > 0 else []
        return self.offered

    def take(self, places: dict[str, str | None]) -> None:
        """Take the offered steps that lead somewhere new."""
        for onward in self.offered:
            memory_id = places[onward.id]
            if memory_id is not None and memory_id not in self.seen:
                self.seen.add(memory_id)
                self.reached.append(onward.taken(memory_id))

    def end(self) -> None:
        """The level is whole."""
        self.front = sorted(self.reached, key=lambda step: (-step.score, step.path))
        self.found += self.front


def walk(db: sqlite3.Connection, seeds: Sequence[str], depth: int, hops: Hops, per_seed: int) -> list[Step]:
    """Each memory once per seed. A seed that has reached enough goes no deeper: what is nearer comes first anyway."""
    walks = [_Seed({seed}, [Step(seed, seed, 0, (seed,), (), 1.0)], per_seed) for seed in dict.fromkeys(seeds)]
    places = _Places(db, hops)
    for _ in range(depth):
        going = [one for one in walks if one.front and len(one.found) < per_seed]
        if not going:
            break
        links = _Links(db, hops, sorted({step.id for one in going for step in one.front}), 2 * per_seed)
        for one in going:
            one.begin(links)
        while offered := [onward.id for one in going for onward in one.offer()]:
            places.look_up(offered)
            for one in going:
                one.take(places.known)
        for one in going:
            one.end()
    return [step for one in walks for step in one.found]


class _Links:
    """The links of a level's memories, read once. The heaviest come first, the rest when a walk gets that far."""

    def __init__(self, db: sqlite3.Connection, hops: Hops, nodes: list[str], at_once: int) -> None:
        self._db, self._hops, self._at_once = db, hops, at_once
        self._read: dict[tuple[str, bool], list[Hop]] = {}
        self._names = {node: [node] for node in nodes}
        if hops.inbound:
            self._add_predecessors(nodes)

    def _add_predecessors(self, nodes: list[str]) -> None:
        """A link to what a memory superseded is a link to it."""
        condition, values = where(self._hops.filters)
        sql = _PREDECESSORS.format(condition=condition)
        for earlier, heir in self._db.execute(sql, (json.dumps(nodes), *values)):
            self._names[heir].append(earlier)

    def onward(self, step: Step) -> Iterator[Iterator[Onward]]:
        """Every step on from this one: a sorted run for each direction, and for each memory it has superseded."""
        if self._hops.outbound:
            yield self._run(step, step.id, False)
        if self._hops.inbound:
            for name in self._names[step.id]:
                yield self._run(step, name, True)

    def _run(self, step: Step, name: str, backward: bool) -> Iterator[Onward]:
        for lightness, memory_id, kind in self._of(name, backward):
            yield Onward(step.score * lightness, step.path, memory_id, kind, backward, step)

    def _of(self, name: str, backward: bool) -> Iterator[Hop]:
        read = self._read.get((name, backward))
        if read is None:
            read = self._read[name, backward] = self._rows(name, backward, self._at_once, 0)
        yield from read[: self._at_once]
        if len(read) == self._at_once:
            read += self._rows(name, backward, -1, self._at_once)
        yield from read[self._at_once :]

    def _rows(self, name: str, backward: bool, limit: int, offset: int) -> list[Hop]:
        here, there = ("target", "source") if backward else ("source", "target")
        types = self._hops.types
        typed = "" if types is None else f"AND l.type IN ({', '.join('?' * len(types))})"
        sql = _LINKS.format(here=here, there=there, typed=typed, lightest=LIGHTEST, heaviest=HEAVIEST)
        return self._db.execute(sql, (name, self._hops.min_weight, *(types or ()), limit, offset)).fetchall()
