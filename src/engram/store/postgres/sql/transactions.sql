-- name: newer_version
SELECT version FROM engram.schema_versions WHERE version > %(latest)s LIMIT 1

-- name: note_commit
INSERT INTO engram.commits (tenant, writer, token, at) VALUES (%(tenant)s, %(writer)s, %(token)s, now())
ON CONFLICT (tenant, writer) DO UPDATE SET token = excluded.token, at = excluded.at

-- name: what_became
-- Without a row nothing was committed, and now that transaction cannot commit any more: its row would conflict with this one.
INSERT INTO engram.commits AS known (tenant, writer, token, at) VALUES (%(tenant)s, %(writer)s, '', now())
ON CONFLICT (tenant, writer) DO UPDATE SET at = excluded.at
RETURNING known.token

-- name: forget_writers
-- By the server's clock, which also wrote the times: a client's may be wrong.
DELETE FROM engram.commits WHERE tenant = %(tenant)s AND at < now() - %(days)s * interval '1 day'

-- name: last_document
SELECT max(n) FROM engram.documents WHERE tenant = %(tenant)s

-- name: last_seq
SELECT max(seq) FROM engram.journal WHERE tenant = %(tenant)s

-- name: lock_scopes
INSERT INTO engram.scopes AS s (tenant, scope, change)
SELECT %(tenant)s, scope, 1 FROM unnest(%(scopes)b::text[]) scope ORDER BY scope
ON CONFLICT (tenant, scope) DO UPDATE SET change = s.change + 1
RETURNING scope, change

-- name: mark
SELECT change FROM engram.scopes WHERE tenant = %(tenant)s AND scope = %(scope)s

-- name: lock_memories
SELECT id, record::text FROM engram.agent_memory
WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[]) ORDER BY id FOR UPDATE

-- name: take_numbers
INSERT INTO engram.id_numbers AS known (tenant, day, last) VALUES (%(tenant)s, %(day)s, %(count)s)
ON CONFLICT (tenant, day) DO UPDATE SET last = known.last + excluded.last
RETURNING last

-- name: give_back_numbers
UPDATE engram.id_numbers SET last = last - %(count)s WHERE tenant = %(tenant)s AND day = %(day)s AND last = %(last)s

-- name: raise_numbers
INSERT INTO engram.id_numbers AS known (tenant, day, last)
SELECT %(tenant)s, day, last FROM unnest(%(days)b::text[], %(lasts)b::integer[]) AS given(day, last) ORDER BY day
ON CONFLICT (tenant, day) DO UPDATE SET last = greatest(known.last, excluded.last)
WHERE known.last < excluded.last

-- name: purged
SELECT id FROM engram.tombstones WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[])

-- name: names_like
-- OFFSET 0 keeps the planner to one short range of the index for each name, however many it expects.
SELECT DISTINCT known.name, known.scope FROM unnest(%(names)b::text[], %(scopes)b::text[]) AS wanted(name, scope)
CROSS JOIN LATERAL (
    SELECT n.name, n.scope FROM engram.memory_names n
    WHERE n.tenant = %(tenant)s AND n.name >= wanted.name COLLATE "C" AND n.name < (wanted.name || '.') COLLATE "C"
        AND n.scope = wanted.scope OFFSET 0
) known

-- name: changed_since
SELECT m.record::text FROM engram.documents d
JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = d.id
WHERE d.tenant = %(tenant)s AND d.scope = %(scope)s AND d.change > %(mark)s AND d.kind = 'memory' ORDER BY d.change

-- name: heads
SELECT wanted.key, wanted.scope, known.id, known.record::text
FROM (SELECT DISTINCT key, scope FROM unnest(%(keys)b::text[], %(scopes)b::text[]) AS given(key, scope)) wanted
CROSS JOIN LATERAL (
    SELECT m.id, m.record FROM engram.agent_memory m
    WHERE m.tenant = %(tenant)s AND m.conflict_key = wanted.key AND m.conflict_key <> '' AND m.scope = wanted.scope
        AND m.status IN ('active', 'dormant')
    ORDER BY m.id
) known

-- name: lineage
SELECT m.id, m.record::text FROM engram.agent_memory m
WHERE m.tenant = %(tenant)s AND m.lineage = %(lineage)s AND m.lineage <> '' ORDER BY m.id

-- name: put_decision
INSERT INTO engram.journal (tenant, seq, at, op, actor, reason, session, ids)
VALUES (%(tenant)s, %(seq)s, %(at)s, %(op)s, %(actor)s, %(reason)s, %(session)s, %(ids)s)

-- name: put_images
INSERT INTO engram.journal_images (tenant, id, seq, at, op, after)
SELECT %(tenant)s, id, %(seq)s, %(at)s, %(op)s, after::json
FROM unnest(%(ids)b::text[], %(images)b::text[]) AS given(id, after)
RETURNING 1

-- name: next_decision
SELECT nextval('engram.decision_numbers')

-- name: same_text
SELECT m.record::text FROM (
    SELECT d.id, d.n, d.status FROM engram.documents d
    WHERE d.tenant = %(tenant)s AND d.hash = %(hash)s AND d.hash <> '' OFFSET 0
) d JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = d.id
WHERE d.status = ANY(%(statuses)b::text[]) ORDER BY d.n

-- name: exact
-- OFFSET 0 leaves the hash as the only way in: before there are statistics the planner would rather read a whole scope, once
-- for every hash. Only a memory has one.
SELECT wanted.hash, wanted.scope, known.record::text
FROM (SELECT DISTINCT hash, scope FROM unnest(%(hashes)b::text[], %(scopes)b::text[]) AS given(hash, scope)) wanted
CROSS JOIN LATERAL (
    SELECT m.record FROM (
        SELECT d.id, d.n, d.scope, d.status FROM engram.documents d
        WHERE d.tenant = %(tenant)s AND d.hash = wanted.hash AND d.hash <> '' OFFSET 0
    ) d JOIN engram.agent_memory m ON m.tenant = %(tenant)s AND m.id = d.id
    WHERE d.scope = wanted.scope AND d.status IN ('active', 'dormant', 'candidate')
    ORDER BY d.status = 'active' DESC, d.n DESC LIMIT 1
) known
