"""Reads the links of the index for a walk: the heaviest few of a memory without looking up where the rest lead."""

import json
import sqlite3
from collections.abc import Iterator, Sequence

from engram.model.relations import HEAVIEST, LIGHTEST
from engram.store.files.index.search import where
from engram.store.traversal import LONGEST_CHAIN, Hops, Link

# The links are sorted in a subquery of their own, so that each document is looked up only when its row is taken.
_LINKS = """
SELECT {destination} AS destination, o.type, o.weight FROM (
    SELECT w.id, w.type, max({lightest}, min({heaviest}, w.weight)) AS weight FROM (
        SELECT l.{there} AS id, l.type, CASE l.type WHEN 'co_accessed'
            THEN l.weight * faded(l.strength, coalesce(({now} - l.reinforced) / 86400, 0)) ELSE l.weight END AS weight
        FROM links l WHERE l.{here} = ? {typed} {given}
    ) w WHERE w.weight > 0 AND w.weight >= {least} ORDER BY 3 DESC, 1, 2 LIMIT -1
) o CROSS JOIN docs d ON d.id = o.id WHERE destination IS NOT NULL
"""
_GIVEN = """
AND (l.type <> 'co_accessed' OR NOT EXISTS (SELECT 1 FROM links g WHERE g.source = l.{source} AND g.target = l.{target}
AND g.type <> 'co_accessed' AND g.weight > 0 AND g.weight >= {least} {typed}))
"""
_ITSELF = "CASE WHEN {condition} THEN d.id END"
_OR_SUCCESSOR = """
CASE WHEN {condition} THEN d.id WHEN d.status = 'superseded' THEN (
    WITH RECURSIVE later (id, hops) AS (
        SELECT json_extract(r.record, '$.superseded_by'), 1 FROM records r WHERE r.n = d.n
        UNION ALL
        SELECT json_extract(r.record, '$.superseded_by'), l.hops + 1 FROM later l
        CROSS JOIN docs e ON e.id = l.id CROSS JOIN records r ON r.n = e.n WHERE l.hops < {longest}
    )
    SELECT d.id FROM later l CROSS JOIN docs d ON d.id = l.id WHERE {condition} ORDER BY l.hops LIMIT 1
) END
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


class IndexLinks:
    """The links that a walk with these hops follows."""

    def __init__(self, db: sqlite3.Connection, hops: Hops) -> None:
        self._db, self._hops = db, hops
        self._condition, self._values = where(hops.filters)
        self._outbound = self._statement("source", "target", _OR_SUCCESSOR)
        self._inbound = self._statement("target", "source", _ITSELF)

    def _statement(self, here: str, there: str, destination: str) -> str:
        hops, least = self._hops, repr(self._hops.min_weight)
        typed = "" if hops.types is None else f"AND {{link}}.type IN ({', '.join('?' * len(hops.types))})"
        ways = (("source", "target"), ("target", "source"))[: hops.given_ways]
        given = (_GIVEN.format(source=a, target=b, least=least, typed=typed.format(link="g")) for a, b in ways)
        return _LINKS.format(
            destination=destination.format(condition=self._condition, longest=LONGEST_CHAIN),
            here=here, there=there, typed=typed.format(link="l"), given="".join(given), least=least,
            lightest=LIGHTEST, heaviest=HEAVIEST, now=repr(hops.at.timestamp()),
        )  # fmt: skip

    def __call__(self, ids: Sequence[str], most: int) -> Iterator[Link]:
        """The links to so many neighbours of each memory, in each direction."""
        followed = (self._hops.types or ()) * (1 + self._hops.given_ways)
        if self._hops.outbound:
            for memory_id in ids:
                values = (*self._values, *self._values, memory_id, *followed)
                yield from self._heaviest(self._outbound, values, memory_id, most, forward=True)
        if self._hops.inbound:
            for earlier, heir in self._with_predecessors(ids):
                values = (*self._values, earlier, *followed)
                yield from self._heaviest(self._inbound, values, heir, most, forward=False)

    def _heaviest(
        self, statement: str, values: Sequence[object], memory_id: str, most: int, *, forward: bool
    ) -> Iterator[Link]:
        """The heaviest link to each of the first `most` neighbours."""
        found: set[str] = set()
        for destination, kind, weight in self._db.execute(statement, values):
            if destination not in found:
                found.add(destination)
                yield Link(memory_id, destination, kind, weight, forward)
                if len(found) == most:
                    return

    def _with_predecessors(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        """Each memory, and those it has superseded, with the memory: a link to one of them counts as a link to it."""
        predecessors = _PREDECESSORS.format(condition=self._condition)
        rows = self._db.execute(predecessors, (json.dumps(list(ids)), *self._values))
        return [*zip(ids, ids, strict=True), *rows]
