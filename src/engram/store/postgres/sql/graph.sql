-- name: walk
-- One row for each seed and level, its memories as arrays: a recursion sees only its last step, so each row carries what was
-- seen before. `ranks` orders paths, so that of two equally heavy ones every backend takes the same. A seed that has reached
-- enough goes no deeper: what is nearer comes first anyway.
WITH RECURSIVE walked AS (
    SELECT s.id AS seed, 0 AS depth, ARRAY[s.id] AS seen, ARRAY[s.id] AS ids, ARRAY[1::float8] AS scores,
        ARRAY[0::bigint] AS ranks, ARRAY['' COLLATE "C"] AS parents, ARRAY['' COLLATE "C"] AS types, ARRAY[true] AS forward
    FROM (SELECT given.id COLLATE "C" AS id FROM unnest(%(seeds)b::text[]) AS given(id)) s
    UNION ALL
    SELECT w.seed, w.depth + 1, w.seen || n.ids, n.ids, n.scores, n.ranks, n.parents, n.types, n.forward
    FROM walked w CROSS JOIN LATERAL (
        SELECT array_agg(c.id ORDER BY c.place) AS ids, array_agg(c.score ORDER BY c.place) AS scores,
            array_agg(c.own ORDER BY c.place) AS ranks, array_agg(c.parent ORDER BY c.place) AS parents,
            array_agg(c.type ORDER BY c.place) AS types, array_agg(c.forward ORDER BY c.place) AS forward
        FROM (
            SELECT b.*, row_number() OVER (ORDER BY b.rank, b.id COLLATE "C") AS own,
                row_number() OVER (ORDER BY b.score DESC, b.rank, b.id COLLATE "C") AS place
            FROM (
                SELECT DISTINCT ON (e.id COLLATE "C") e.id, f.score * e.weight AS score, f.rank, f.id AS parent, e.type,
                    e.forward
                FROM unnest(w.ids, w.scores, w.ranks) AS f(id, score, rank)
                CROSS JOIN LATERAL ({hops}) e
                ORDER BY e.id COLLATE "C", f.score * e.weight DESC, f.rank, e.type COLLATE "C", e.forward DESC
            ) b
            ORDER BY place LIMIT %(per_seed)s::bigint + 1 - cardinality(w.seen)
        ) c
    ) n
    WHERE w.depth < %(depth)s::integer AND cardinality(w.seen) <= %(per_seed)s::bigint AND n.ids IS NOT NULL
)
SELECT seed, depth, ids, scores, parents, types, forward FROM walked WHERE depth > 0 ORDER BY depth

-- name: hops_outbound
-- Sorted before anything is looked up, so that of a memory's thousands of links only the heaviest few are. A link to a memory
-- that was superseded leads to its first successor that passes; two links may so lead to one, hence twice the number wanted.
SELECT p.id, r.type, r.weight, true AS forward
FROM (
    SELECT o.target, o.type, o.weight FROM (
        SELECT DISTINCT ON (r.target) r.target, r.type, least(greatest(r.weight, {lightest}), {heaviest}) AS weight
        FROM (
            SELECT r.source, r.target, r.type, {weight} AS weight FROM engram.memory_relations r
            WHERE r.tenant = %(tenant)s AND r.source = f.id {typed} OFFSET 0
        ) r
        WHERE r.weight > 0 AND r.weight >= %(min_weight)s::float8 {given}
        ORDER BY r.target, r.weight DESC, r.type
    ) o ORDER BY o.weight DESC, o.target
) r
CROSS JOIN LATERAL (
    SELECT CASE WHEN {condition} THEN d.id WHEN d.status = 'superseded' THEN (
        WITH RECURSIVE later AS (
            SELECT m.record ->> 'superseded_by' AS id, 1 AS hops FROM engram.agent_memory m
            WHERE m.tenant = %(tenant)s AND m.id = r.target
            UNION ALL
            SELECT m.record ->> 'superseded_by', l.hops + 1 FROM later l
            JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = l.id WHERE l.hops < 64
        )
        SELECT d.id FROM later l JOIN engram.documents d ON d.tenant = %(tenant)s AND d.id = l.id
        WHERE {condition} ORDER BY l.hops LIMIT 1
    ) END AS id FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.id = r.target OFFSET 0
) p
WHERE p.id IS NOT NULL AND p.id <> ALL (w.seen)
ORDER BY r.weight DESC, r.target LIMIT 2 * (%(per_seed)s::bigint + 1 - cardinality(w.seen))

-- name: hops_inbound
-- A link to a superseded memory counts as a link to its successor.
SELECT p.id, r.type, r.weight, false AS forward
FROM (
    SELECT o.source, o.type, o.weight FROM (
        SELECT DISTINCT ON (r.source) r.source, r.type, least(greatest(r.weight, {lightest}), {heaviest}) AS weight
        FROM (
            SELECT f.id
            UNION ALL
            SELECT e.id FROM (
                WITH RECURSIVE earlier AS (
                    SELECT f.id
                    UNION
                    SELECT s.id FROM earlier e JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = e.id
                    CROSS JOIN LATERAL json_array_elements_text(m.record -> 'supersedes') AS s(id)
                )
                SELECT e.id FROM earlier e WHERE e.id <> f.id
            ) e CROSS JOIN LATERAL (
                SELECT 1 FROM engram.documents d
                WHERE d.tenant = %(tenant)s AND d.id = e.id AND d.status = 'superseded' AND NOT ({condition}) OFFSET 0
            ) gone
        ) t CROSS JOIN LATERAL (
            SELECT r.source, r.target, r.type, {weight} AS weight FROM engram.memory_relations r
            WHERE r.tenant = %(tenant)s AND r.target = t.id {typed} OFFSET 0
        ) r
        WHERE r.weight > 0 AND r.weight >= %(min_weight)s::float8 {given}
        ORDER BY r.source, r.weight DESC, r.type
    ) o ORDER BY o.weight DESC, o.source
) r
CROSS JOIN LATERAL (
    SELECT d.id FROM engram.documents d WHERE d.id = r.source AND {condition} OFFSET 0
) p
WHERE p.id <> ALL (w.seen)
ORDER BY r.weight DESC, r.source LIMIT %(per_seed)s::bigint + 1 - cardinality(w.seen)

-- name: hop_weight
-- A learned link decays with every day since its last use, and counts as gone below a minimum; an explicit one keeps its weight.
CASE r.type WHEN 'co_accessed' THEN (
    SELECT CASE WHEN s.strength >= {least} THEN r.weight * s.strength ELSE 0 END FROM (
        SELECT r.strength * power({daily}::float8,
            greatest(0, coalesce(extract(epoch FROM %(at)s::timestamptz - r.reinforced)::float8 / 86400, 0))) AS strength
    ) s
) ELSE r.weight END

-- name: hop_given
-- A learned link is skipped if an explicit relation that this walk follows joins the same two memories.
AND (r.type <> 'co_accessed' OR NOT EXISTS (
    SELECT 1 FROM engram.memory_relations g WHERE g.tenant = %(tenant)s AND g.source = r.{source} AND g.target = r.{target}
    AND g.type <> 'co_accessed' AND g.weight > 0 AND g.weight >= %(min_weight)s::float8 {typed}
))
