-- name: links
-- The links of some memories; the neighbours of each come heaviest first, a limited number in each direction.
SELECT f.id, e.id, e.type, e.weight, e.forward
FROM (SELECT given.id COLLATE "C" AS id FROM unnest(%(ids)b::text[]) AS given(id)) f CROSS JOIN LATERAL ({hops}) e

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
            JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = l.id WHERE l.hops < {longest}
        )
        SELECT d.id FROM later l JOIN engram.documents d ON d.tenant = %(tenant)s AND d.id = l.id
        WHERE {condition} ORDER BY l.hops LIMIT 1
    ) END AS id FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.id = r.target OFFSET 0
) p
WHERE p.id IS NOT NULL
ORDER BY r.weight DESC, r.target LIMIT 2 * %(most)s::bigint

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
ORDER BY r.weight DESC, r.source LIMIT %(most)s::bigint

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
