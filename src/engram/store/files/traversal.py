"""Breadth-first walks over the links of the index.

Most memories have few links: those of a whole level are read together. One may have thousands, of which a walk needs the
heaviest few: these are read first, the rest if the walk gets that far. The links of a level are merged lazily, and
only memories that come next are looked up.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from heapq import merge
from itertools import islice
from typing import NamedTuple

from engram.model.relations import HEAVIEST, LIGHTEST
from engram.store.files.index.search import where
from engram.store.protocol import Step
from engram.store.traversal import Hops

LONGEST_CHAIN = 64
"""Most successors of a superseded memory that are followed; only a damaged store has more."""

_CROWDED = """
SELECT j.value FROM json_each(?) j WHERE (SELECT count(*) FROM (SELECT 1 FROM links l WHERE l.{here} = j.value LIMIT ?)) = ?
"""
_WEIGHT = """
CASE l.type WHEN 'co_accessed' THEN l.weight * faded(l.strength, coalesce(({now} - l.reinforced) / 86400, 0))
ELSE l.weight END
"""
_LINKS_OF_SEVERAL = """
SELECT l.{here}, -max({lightest}, min({heaviest}, {weight})), l.{there}, l.type FROM json_each(?) j
CROSS JOIN links l ON l.{here} = j.value WHERE {weight} > 0 AND {weight} >= ? {typed}
"""
# One memory at a time: for the first few of many links this is ten times faster than a window function.
_LINKS_OF_ONE = """
SELECT l.{here}, -max({lightest}, min({heaviest}, {weight})) AS lightness, l.{there}, l.type FROM links l
WHERE l.{here} = ? AND {weight} > 0 AND {weight} >= ? {typed} ORDER BY lightness, l.{there}, l.type LIMIT ? OFFSET ?
"""
_GIVEN = """
AND (l.type <> 'co_accessed' OR NOT EXISTS (SELECT 1 FROM links g WHERE g.source = {source} AND g.target = {target}
AND g.type <> 'co_accessed' AND g.weight > 0 AND g.weight >= ? {typed}))
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
    WHERE instr(r.record, '"supersedes"') -- few have it, and to take a record apart takes long
)
SELECT e.id, e.heir FROM earlier e CROSS JOIN docs d ON d.id = e.id
WHERE e.id <> e.heir AND d.status = 'superseded' AND NOT ({condition})
"""


Hop = tuple[str, float, str, str]
"""A link: memory, negative weight, linked memory, relation. Sorted, the heaviest of each memory comes first."""


class Onward(NamedTuple):
    """A possible next step; sorts in the order in which steps are taken."""

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
class _Destinations:
    """Where links lead: to a memory, to its successor, or nowhere. Each is looked up once per walk."""

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
class _SeedWalk:
    """One seed's walk: the steps taken, and the next level."""

    seen: set[str]
    front: list[Step]
    wanted: int
    found: list[Step] = field(default_factory=list)
    ahead: Iterator[Onward] = field(default_factory=lambda: iter(()))
    offered: list[Onward] = field(default_factory=list)
    reached: list[Step] = field(default_factory=list)

    def begin(self, links: "_LevelLinks") -> None:
        """Start the next level."""
        self.ahead = merge(*(onward for step in self.front for onward in links.onward(step)))
        self.reached = []

    def offer(self) -> list[Onward]:
        """The next steps, as many as are still needed; none at the end of the level."""
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
        """Finish the level."""
        self.front = sorted(self.reached, key=lambda step: (-step.score, step.path))
        self.found += self.front


def walk(db: sqlite3.Connection, seeds: Sequence[str], depth: int, hops: Hops, per_seed: int) -> list[Step]:
    """The steps from each seed, each memory once per seed. A seed with enough steps goes no deeper."""
    walks = [_SeedWalk({seed}, [Step(seed, seed, 0, (seed,), (), 1.0)], per_seed) for seed in dict.fromkeys(seeds)]
    places, readers = _Destinations(db, hops), _link_readers(db, hops, 2 * per_seed)
    for _ in range(depth):
        going = [one for one in walks if one.front and len(one.found) < per_seed]
        if not going:
            break
        links = _LevelLinks(db, hops, readers, sorted({step.id for one in going for step in one.front}))
        for one in going:
            one.begin(links)
        while offered := [onward.id for one in going for onward in one.offer()]:
            places.look_up(offered)
            for one in going:
                one.take(places.known)
        for one in going:
            one.end()
    return [step for one in walks for step in one.found]


@dataclass(slots=True)
class _LinkReader:
    """Reads links in one direction: forward or backward."""

    db: sqlite3.Connection
    backward: bool
    crowded: str
    of_several: str
    of_one: str
    followed: tuple[object, ...]
    at_once: int

    def links(self, names: list[str]) -> dict[str, Iterable[Hop]]:
        """The links of each memory, heaviest first."""
        more = self.at_once + 1
        crowded = {name for (name,) in self.db.execute(self.crowded, (json.dumps(names), more, more))}
        few: dict[str, list[Hop]] = {name: [] for name in names if name not in crowded}
        for hop in self.db.execute(self.of_several, (json.dumps(list(few)), *self.followed)):
            few[hop[0]].append(hop)
        for hops in few.values():
            hops.sort()
        return {**few, **{name: _ManyLinks(self, name) for name in crowded}}

    def rows(self, name: str, limit: int, offset: int) -> list[Hop]:
        return self.db.execute(self.of_one, (name, *self.followed, limit, offset)).fetchall()


class _ManyLinks:
    """The links of a memory with many: the heaviest at once, the rest if the walk gets that far."""

    def __init__(self, reader: _LinkReader, name: str) -> None:
        self._reader, self._name = reader, name
        self._read = reader.rows(name, reader.at_once, 0)

    def __iter__(self) -> Iterator[Hop]:
        at_once = self._reader.at_once
        yield from self._read[:at_once]
        if len(self._read) == at_once:
            self._read += self._reader.rows(self._name, -1, at_once)
        yield from self._read[at_once:]


def _link_readers(db: sqlite3.Connection, hops: Hops, at_once: int) -> list[_LinkReader]:
    typed = "" if hops.types is None else f"AND {{link}}.type IN ({', '.join('?' * len(hops.types))})"
    values = (hops.min_weight, *(hops.types or ()))
    given = _given(hops, typed.format(link="g"))
    weight = _WEIGHT.format(now=repr(hops.at.timestamp()))
    found = []
    for here, there, followed in (("source", "target", hops.outbound), ("target", "source", hops.inbound)):
        if followed:
            named = {
                "here": here, "there": there, "typed": typed.format(link="l") + "".join(given), "weight": weight,
                "lightest": LIGHTEST, "heaviest": HEAVIEST,
            }  # fmt: skip
            crowded, several, one = (text.format(**named) for text in (_CROWDED, _LINKS_OF_SEVERAL, _LINKS_OF_ONE))
            found.append(_LinkReader(db, here == "target", crowded, several, one, values * (1 + len(given)), at_once))
    return found


def _given(hops: Hops, typed: str) -> list[str]:
    """Conditions that drop a learned link between two memories that also have an explicit relation."""
    if not hops.prefers_given:
        return []
    readers = [("l.source", "l.target"), ("l.target", "l.source")]
    return [
        _GIVEN.format(source=source, target=target, typed=typed)
        for source, target in readers[: 2 if hops.outbound and hops.inbound else 1]
    ]


class _LevelLinks:
    """The links of a level's memories, read once."""

    def __init__(self, db: sqlite3.Connection, hops: Hops, readers: list[_LinkReader], nodes: list[str]) -> None:
        self._names = {node: [node] for node in nodes}
        if hops.inbound:
            self._add_predecessors(db, hops)
        every = [name for names in self._names.values() for name in names]
        self._read = [(reader.backward, reader.links(every if reader.backward else nodes)) for reader in readers]

    def _add_predecessors(self, db: sqlite3.Connection, hops: Hops) -> None:
        """Count links to a superseded memory as links to its successor."""
        condition, values = where(hops.filters)
        sql = _PREDECESSORS.format(condition=condition)
        for earlier, heir in db.execute(sql, (json.dumps(list(self._names)), *values)):
            self._names[heir].append(earlier)

    def onward(self, step: Step) -> Iterator[Iterator[Onward]]:
        """All steps from this one: a sorted run per direction, and per memory it has superseded."""
        for backward, links in self._read:
            for name in self._names[step.id] if backward else (step.id,):
                yield _run(step, links[name], backward)


def _run(step: Step, links: Iterable[Hop], backward: bool) -> Iterator[Onward]:
    for _, lightness, memory_id, kind in links:
        yield Onward(step.score * lightness, step.path, memory_id, kind, backward, step)
