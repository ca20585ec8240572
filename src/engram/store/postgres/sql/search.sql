-- name: owner_of
SELECT scope FROM engram.documents WHERE tenant = %(tenant)s AND id = %(id)s

-- name: lexical
-- BM25 as in FTS5 (k1 1.2, b 0.75), with a weight for each field; the caller prunes and weights the terms.
-- OFFSET 0 keeps the planner to the terms' own postings, however many it expects, and to the documents' key: the best are
-- looked up one after the other until enough of them pass.
SELECT found.n, found.score, d.parent, d.position, coalesce(tail.position, 0) FROM (
    SELECT p.n, sum(a.rarity * 2.2 * p.times / (p.times + 1.2 * (0.25 + 0.75 * p.length / %(average)s))) AS score
    FROM unnest(%(terms)b::text[], %(rarities)b::float8[]) AS a(term, rarity)
    CROSS JOIN LATERAL (
        SELECT o.n, o.statement * %(w0)s + o.about * %(w1)s + o.support * %(w2)s + o.cues * %(w3)s AS times, o.length
        FROM engram.postings o
        WHERE o.tenant = %(tenant)s AND o.term = a.term OFFSET 0
    ) p
    GROUP BY p.n ORDER BY score DESC, p.n
) found
CROSS JOIN LATERAL (SELECT d.parent, d.position FROM engram.documents d WHERE d.n = found.n AND {condition} OFFSET 0) d
LEFT JOIN LATERAL (
    SELECT l.position FROM engram.documents l WHERE l.tenant = %(tenant)s AND l.parent = d.parent AND l.parent <> ''
    ORDER BY l.position DESC LIMIT 1
) tail ON true
ORDER BY found.score DESC, found.n LIMIT %(limit)s

-- name: near
-- The nearest of all that pass; the last row is the number of vectors compared.
WITH nearest AS MATERIALIZED ({nearest})
(
    SELECT v.n, -v.distance AS score, d.parent, d.position, coalesce(tail.position, 0)
    FROM (SELECT f.n, f.distance FROM nearest f ORDER BY f.distance, f.n) v
    CROSS JOIN LATERAL (SELECT d.parent, d.position FROM engram.documents d WHERE d.n = v.n AND {condition} OFFSET 0) d
    LEFT JOIN LATERAL (
        SELECT l.position FROM engram.documents l WHERE l.tenant = %(tenant)s AND l.parent = d.parent AND l.parent <> ''
        ORDER BY l.position DESC LIMIT 1
    ) tail ON true
    ORDER BY v.distance, v.n LIMIT %(limit)s
)
UNION ALL SELECT NULL, NULL, NULL, NULL, count(*) FROM nearest

-- name: near_all
-- The nearest of some vectors bound the nearest of all: what is farther away need not be sorted.
SELECT v.n, v.vector <#> %(vector)s::halfvec AS distance FROM engram.memory_vectors v
WHERE v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.kind = ANY(%(kinds)b::text[]) AND {fits}
    AND v.vector <#> %(vector)s::halfvec <= (
        SELECT CASE count(*) WHEN %(wide)s THEN max(b.distance) ELSE 'infinity' END FROM (
            SELECT s.distance FROM (
                SELECT o.vector <#> %(vector)s::halfvec AS distance FROM engram.memory_vectors o
                WHERE o.tenant = %(tenant)s AND o.generation = %(generation)s AND o.kind = ANY(%(kinds)b::text[])
                    AND {some_fit} LIMIT %(some)s
            ) s ORDER BY s.distance LIMIT %(wide)s
        ) b
    )
ORDER BY distance, v.n LIMIT %(wide)s

-- name: near_scopes
SELECT v.n, v.vector <#> %(vector)s::halfvec AS distance FROM engram.memory_vectors v
WHERE v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.kind = ANY(%(kinds)b::text[])
    AND v.scope = ANY(%(scopes)b::text[]) AND {fits}
    AND v.vector <#> %(vector)s::halfvec <= (
        SELECT CASE count(*) WHEN %(wide)s THEN max(b.distance) ELSE 'infinity' END FROM (
            SELECT s.distance FROM (
                SELECT o.vector <#> %(vector)s::halfvec AS distance FROM engram.memory_vectors o
                WHERE o.tenant = %(tenant)s AND o.generation = %(generation)s AND o.kind = ANY(%(kinds)b::text[])
                    AND o.scope = ANY(%(scopes)b::text[]) AND {some_fit} LIMIT %(some)s
            ) s ORDER BY s.distance LIMIT %(wide)s
        ) b
    )
ORDER BY distance, v.n LIMIT %(wide)s

-- name: near_among
SELECT near.n, -near.distance, near.parent, near.position, coalesce(tail.position, 0) FROM (
    SELECT d.n, d.parent, d.position, v.vector <#> %(vector)s::halfvec AS distance FROM engram.documents d
    JOIN engram.memory_vectors v ON v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = d.n
    WHERE {condition}
    ORDER BY distance, d.n LIMIT %(limit)s
) near
LEFT JOIN LATERAL (
    SELECT l.position FROM engram.documents l WHERE l.tenant = %(tenant)s AND l.parent = near.parent AND l.parent <> ''
    ORDER BY l.position DESC LIMIT 1
) tail ON true
ORDER BY near.distance, near.n

-- name: listed
SELECT m.record::text FROM engram.documents d JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = d.id
WHERE {condition} ORDER BY {uses}d.time DESC NULLS LAST, d.n DESC LIMIT %(limit)s OFFSET %(offset)s

-- name: counted
SELECT count(*) FROM engram.documents d WHERE {condition}

-- name: document_positions
SELECT d.n, d.parent, d.position, CASE d.parent WHEN '' THEN 0 ELSE (
    SELECT l.position FROM engram.documents l WHERE l.tenant = %(tenant)s AND l.parent = d.parent AND l.parent <> ''
    ORDER BY l.position DESC LIMIT 1
) END
FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.n = ANY(%(numbers)b::bigint[])

-- name: alone
SELECT d.n, d.statement, d.about, d.support, d.cues, d.parent, d.position, extract(epoch FROM d.time)::float8, true, v.vector
FROM unnest(%(numbers)b::bigint[]) WITH ORDINALITY AS wanted(n, place)
JOIN engram.documents d ON d.tenant = %(tenant)s AND d.n = wanted.n
LEFT JOIN engram.memory_vectors v ON v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = wanted.n
ORDER BY wanted.place

-- name: together
SELECT d.n, d.statement, d.about, d.support, d.cues, d.parent, d.position, extract(epoch FROM d.time)::float8,
    coalesce({condition}, false), v.vector
FROM unnest(%(parents)b::text[], %(firsts)b::bigint[], %(lasts)b::bigint[]) AS s(parent, first, last)
CROSS JOIN LATERAL (
    SELECT * FROM engram.documents l WHERE l.tenant = %(tenant)s AND l.parent = s.parent AND l.parent <> ''
        AND l.position BETWEEN s.first AND s.last
) d
LEFT JOIN engram.memory_vectors v ON v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = d.n
ORDER BY d.parent, d.position

-- name: numbers
SELECT d.id, d.n FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.id = ANY(%(ids)b::text[])

-- name: records
SELECT d.n, d.kind, coalesce(m.record, e.record)::text FROM engram.documents d
LEFT JOIN engram.agent_memory m ON d.kind = 'memory' AND m.tenant = %(tenant)s AND m.id = d.id
LEFT JOIN engram.agent_events e ON d.kind = 'event' AND e.tenant = %(tenant)s AND e.id = d.id
WHERE d.tenant = %(tenant)s AND d.n = ANY(%(numbers)b::bigint[])

-- name: vectors
SELECT v.n, v.vector FROM engram.memory_vectors v
WHERE v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = ANY(%(numbers)b::bigint[])

-- name: by_id
SELECT record::text FROM engram.agent_memory WHERE tenant = %(tenant)s AND id = %(id)s

-- name: known_terms
-- The terms that occur in a document of these scopes, or in very many documents.
SELECT t.term FROM unnest(%(terms)b::text[]) AS t(term) CROSS JOIN LATERAL (
    SELECT count(*) AS held, bool_or(d.scope = ANY(%(scopes)b::text[])) AS seen FROM (
        SELECT p.n FROM engram.postings p WHERE p.tenant = %(tenant)s AND p.term = t.term LIMIT %(common)s
    ) p JOIN engram.documents d ON d.tenant = %(tenant)s AND d.n = p.n
) found
WHERE found.seen OR found.held = %(common)s

-- name: by_name
SELECT DISTINCT m.id, m.status, m.record::text, m.scope FROM engram.memory_names s
JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = s.id WHERE s.tenant = %(tenant)s AND s.name = %(name)s

-- name: named
SELECT id FROM engram.memory_names WHERE tenant = %(tenant)s AND name = %(name)s AND scope = %(scope)s ORDER BY id LIMIT 1

-- name: links_to
SELECT r.source, r.target, r.type, r.strength FROM engram.memory_relations r
WHERE r.tenant = %(tenant)s AND r.target = ANY(%(ids)b::text[])

-- name: history
SELECT i.id, i.seq, j.at, j.op, j.actor, j.reason, i.after::text, j.ids, j.session FROM engram.journal_images i
JOIN engram.journal j ON j.tenant = %(tenant)s AND j.seq = i.seq
WHERE i.tenant = %(tenant)s AND i.id = ANY(%(ids)b::text[]) ORDER BY i.seq

-- name: decisions
SELECT seq, at, op, actor, reason, ids, session FROM engram.journal
WHERE tenant = %(tenant)s AND ids <> '{}' AND (%(session)s::text = '' OR session = %(session)s::text)
ORDER BY seq DESC LIMIT %(limit)s

-- name: known_at
SELECT changed.id, held.after::text FROM
    (SELECT DISTINCT i.id FROM engram.journal_images i WHERE i.tenant = %(tenant)s AND i.at > %(moment)s) changed
LEFT JOIN LATERAL (
    SELECT i.after FROM engram.journal_images i
    WHERE i.tenant = %(tenant)s AND i.id = changed.id AND i.at <= %(moment)s ORDER BY i.seq DESC LIMIT 1
) held ON true

-- name: near_by_index
SELECT v.n, v.vector::halfvec({dim}) <#> %(vector)s::halfvec({dim}) AS distance FROM engram.memory_vectors v
WHERE v.tenant = {tenant} AND v.generation = {generation} AND v.kind = ANY(%(kinds)b::text[]) {scoped}
ORDER BY distance LIMIT %(wide)s

-- name: few_all
-- Counted among the documents: their index is a tenth of the vectors'.
SELECT count(*) FROM (
    SELECT 1 FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.kind = ANY(%(kinds)b::text[]) LIMIT %(enough)s
) counted

-- name: few_scopes
SELECT count(*) FROM (
    SELECT 1 FROM engram.documents d
    WHERE d.tenant = %(tenant)s AND d.kind = ANY(%(kinds)b::text[]) AND d.scope = ANY(%(scopes)b::text[]) LIMIT %(enough)s
) counted
