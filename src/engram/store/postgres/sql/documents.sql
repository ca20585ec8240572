-- name: next_numbers
SELECT nextval('engram.document_numbers') FROM generate_series(1, %(count)s)

-- name: known_documents
SELECT d.id, d.n, d.statement, d.about, d.support, d.cues, d.meaning, d.scope, d.kind, d.change FROM engram.documents d
WHERE d.tenant = %(tenant)s AND d.id = ANY(%(ids)b::text[])

-- name: put_documents
-- An existing document keeps its number. A number that was allocated twice is an error and replaces nothing.
INSERT INTO engram.documents AS known (
    tenant, n, id, kind, scope, status, type, domain, parent, position, time, known, valid_from, valid_until, pinned, hash,
    change, tags, statement, about, support, cues, length, meaning
)
SELECT %(tenant)s, n, id, kind, scope, status, type, domain, parent, position, time, known, valid_from, valid_until, pinned,
    hash, change, coalesce(string_to_array(nullif(tags, ''), chr(31)), '{}'), statement, about, support, cues, length,
    meaning
FROM unnest(
    %(n)b::bigint[], %(id)b::text[], %(kind)b::text[], %(scope)b::text[], %(status)b::text[], %(type)b::text[],
    %(domain)b::text[], %(parent)b::text[], %(position)b::bigint[], %(time)b::timestamptz[], %(known)b::timestamptz[],
    %(valid_from)b::timestamptz[], %(valid_until)b::timestamptz[], %(pinned)b::boolean[], %(hash)b::text[],
    %(change)b::bigint[], %(tags)b::text[], %(statement)b::text[], %(about)b::text[], %(support)b::text[],
    %(cues)b::text[], %(length)b::integer[], %(meaning)b::bytea[]
) AS given(n, id, kind, scope, status, type, domain, parent, position, time, known, valid_from, valid_until, pinned, hash,
    change, tags, statement, about, support, cues, length, meaning)
ORDER BY n
ON CONFLICT (tenant, id) DO UPDATE SET
    scope = excluded.scope, status = excluded.status, type = excluded.type, domain = excluded.domain,
    parent = excluded.parent, position = excluded.position, time = excluded.time, known = excluded.known,
    valid_from = excluded.valid_from, valid_until = excluded.valid_until, pinned = excluded.pinned, hash = excluded.hash,
    change = excluded.change, tags = excluded.tags, statement = excluded.statement, about = excluded.about,
    support = excluded.support, cues = excluded.cues, length = excluded.length, meaning = excluded.meaning

-- name: put_postings
-- One query level, and the tenant from the documents: what is read on a shard is written there. RETURNING, because a cluster that
-- will not do that copies the rows otherwise, which row security forbids.
INSERT INTO engram.postings (tenant, term, n, statement, about, support, cues, length)
SELECT d.tenant, w.term, d.n,
    least(count(*) FILTER (WHERE f.field = 1), 32767), least(count(*) FILTER (WHERE f.field = 2), 32767),
    least(count(*) FILTER (WHERE f.field = 3), 32767), least(count(*) FILTER (WHERE f.field = 4), 32767), d.length
FROM engram.documents d
CROSS JOIN LATERAL unnest(ARRAY[1, 2, 3, 4], ARRAY[d.statement, d.about, d.support, d.cues]) AS f(field, words)
CROSS JOIN LATERAL string_to_table(f.words, ' ') AS w(term)
WHERE d.tenant = %(tenant)s AND d.n = ANY(%(numbers)b::bigint[]) AND w.term <> '' AND w.term <> '?'
GROUP BY d.tenant, d.n, d.length, w.term
RETURNING 1

-- name: drop_postings
DELETE FROM engram.postings p USING (
    SELECT DISTINCT d.n, term FROM engram.documents d,
        string_to_table(d.statement || ' ' || d.about || ' ' || d.support || ' ' || d.cues, ' ') AS term
    WHERE d.tenant = %(tenant)s AND d.n = ANY(%(numbers)b::bigint[])
) old
WHERE p.tenant = %(tenant)s AND p.term = old.term AND p.n = old.n

-- name: put_vectors
INSERT INTO engram.memory_vectors AS known (tenant, generation, n, kind, scope, vector)
SELECT %(tenant)s, %(generation)s, n, kind, scope, vector
FROM unnest(%(numbers)b::bigint[], %(kinds)b::text[], %(scopes)b::text[], %(vectors)s::halfvec[])
    AS given(n, kind, scope, vector)
ON CONFLICT (tenant, generation, n) DO UPDATE SET scope = excluded.scope, vector = excluded.vector

-- name: drop_vectors
DELETE FROM engram.memory_vectors WHERE tenant = %(tenant)s AND n = ANY(%(numbers)b::bigint[])

-- name: move_vectors
UPDATE engram.memory_vectors v SET scope = d.scope FROM engram.documents d
WHERE v.tenant = %(tenant)s AND d.tenant = %(tenant)s AND d.n = v.n AND v.n = ANY(%(numbers)b::bigint[])
    AND v.scope <> d.scope

-- name: add_memories
INSERT INTO engram.agent_memory (tenant, id, record)
SELECT %(tenant)s, id, record::json FROM unnest(%(ids)b::text[], %(records)b::text[]) AS given(id, record)
RETURNING 1

-- name: put_memories
INSERT INTO engram.agent_memory (tenant, id, record)
SELECT %(tenant)s, id, record::json FROM unnest(%(ids)b::text[], %(records)b::text[]) AS given(id, record)
ON CONFLICT (tenant, id) DO UPDATE SET record = excluded.record

-- name: drop_names
DELETE FROM engram.memory_names WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[])

-- name: put_names
INSERT INTO engram.memory_names (tenant, name, id, scope)
SELECT %(tenant)s, name, id, scope FROM unnest(%(names)b::text[], %(ids)b::text[], %(scopes)b::text[])
    AS given(name, id, scope)
ON CONFLICT (tenant, name, id) DO NOTHING

-- name: drop_relations
DELETE FROM engram.memory_relations WHERE tenant = %(tenant)s AND source = ANY(%(ids)b::text[])

-- name: put_relations
INSERT INTO engram.memory_relations (tenant, source, target, type, strength, weight, reinforced)
SELECT DISTINCT ON (source, target, type) %(tenant)s, source, target, type, strength, weight, reinforced
FROM unnest(%(sources)b::text[], %(targets)b::text[], %(types)b::text[], %(strengths)b::float8[], %(weights)b::float8[],
    %(reinforced)b::timestamptz[]) WITH ORDINALITY AS given(source, target, type, strength, weight, reinforced, place)
ORDER BY source, target, type, place DESC
ON CONFLICT (tenant, source, target, type) DO UPDATE SET
    strength = excluded.strength, weight = excluded.weight, reinforced = excluded.reinforced

-- name: drop_documents
DELETE FROM engram.documents WHERE tenant = %(tenant)s AND n = ANY(%(numbers)b::bigint[])

-- name: drop_memories
DELETE FROM engram.agent_memory WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[])
