"""Reads the links of the index for a walk: the heaviest few of a memory without looking up where the rest lead."""

import json
import sqlite3
from collections.abc import Iterator, Sequence

from engram.model.relations import MAX_WEIGHT, MIN_WEIGHT
from engram.store.protocol import MAX_VERSIONS, Hops, Link
from engram.store.sqlite.search import where

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


def read_links(db: sqlite3.Connection, ids: Sequence[str], hops: Hops, most: int) -> Iterator[Link]:
    """The links to so many neighbours of each memory, in each direction."""
    condition, values = where(hops.filters)
    followed = (hops.types or ()) * (1 + hops.explicit_directions)
    if hops.outbound:
        destination = _OR_SUCCESSOR.format(condition=condition, longest=MAX_VERSIONS)
        outbound = _statement(hops, "source", "target", destination)
        for memory_id in ids:
            rows = db.execute(outbound, (*values, *values, memory_id, *followed))
            yield from _first(rows, memory_id, most, forward=True)
    if hops.inbound:
        # A link to a superseded memory counts as a link to its successor.
        predecessors = db.execute(_PREDECESSORS.format(condition=condition), (json.dumps(list(ids)), *values))
        inbound = _statement(hops, "target", "source", _ITSELF.format(condition=condition))
        for earlier, heir in [*zip(ids, ids, strict=True), *predecessors]:
            rows = db.execute(inbound, (*values, earlier, *followed))
            yield from _first(rows, heir, most, forward=False)


def _statement(hops: Hops, here: str, there: str, destination: str) -> str:
    least = repr(hops.min_weight)
    typed = "" if hops.types is None else f"AND {{link}}.type IN ({', '.join('?' * len(hops.types))})"
    ways = (("source", "target"), ("target", "source"))[: hops.explicit_directions]
    given = (_GIVEN.format(source=a, target=b, least=least, typed=typed.format(link="g")) for a, b in ways)
    return _LINKS.format(
        destination=destination, here=here, there=there, typed=typed.format(link="l"), given="".join(given), least=least,
        lightest=MIN_WEIGHT, heaviest=MAX_WEIGHT, now=repr(hops.at.timestamp()),
    )  # fmt: skip


def _first(rows: sqlite3.Cursor, memory_id: str, most: int, *, forward: bool) -> Iterator[Link]:
    """The heaviest link to each of the first `most` neighbours; the rest of the rows are not even looked up."""
    found: set[str] = set()
    for destination, kind, weight in rows:
        if destination not in found:
            found.add(destination)
            yield Link(memory_id, destination, kind, weight, forward)
            if len(found) == most:
                return
