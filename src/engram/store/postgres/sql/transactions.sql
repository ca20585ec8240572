-- name: begin
SELECT (SELECT max(version) FROM engram.schema_versions),
    set_config('engram.tenant', %(tenant)s, true),
    set_config('statement_timeout', %(statement_timeout)s, true),
    set_config('lock_timeout', %(lock_timeout)s, true),
    set_config('idle_in_transaction_session_timeout', %(idle_timeout)s, true),
    set_config('synchronous_commit', CASE %(synchronous)s WHEN 'off' THEN 'off' ELSE current_setting('synchronous_commit') END, true)

-- name: lock_scopes
INSERT INTO engram.scopes AS s (tenant, scope, change)
SELECT %(tenant)s, scope, 1 FROM unnest(%(scopes)s::text[]) scope ORDER BY scope
ON CONFLICT (tenant, scope) DO UPDATE SET change = s.change + 1
RETURNING scope, change

-- name: mark
SELECT change FROM engram.scopes WHERE tenant = %(tenant)s AND scope = %(scope)s

-- name: lock_memories
SELECT id, record::text FROM engram.agent_memory
WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::text[]) ORDER BY id FOR UPDATE

-- name: take_numbers
INSERT INTO engram.id_numbers AS known (tenant, day, last) VALUES (%(tenant)s, %(day)s, %(count)s)
ON CONFLICT (tenant, day) DO UPDATE SET last = known.last + excluded.last
RETURNING last

-- name: give_back_numbers
UPDATE engram.id_numbers SET last = last - %(count)s WHERE tenant = %(tenant)s AND day = %(day)s AND last = %(last)s

-- name: raise_numbers
INSERT INTO engram.id_numbers AS known (tenant, day, last)
SELECT %(tenant)s, day, last FROM unnest(%(days)s::text[], %(lasts)s::integer[]) AS given(day, last) ORDER BY day
ON CONFLICT (tenant, day) DO UPDATE SET last = greatest(known.last, excluded.last)
WHERE known.last < excluded.last

-- name: purged
SELECT id FROM engram.tombstones WHERE tenant = %(tenant)s AND id = ANY(%(ids)s::text[])

-- name: names_like
SELECT DISTINCT known.name, known.scope FROM unnest(%(names)s::text[], %(scopes)s::text[]) AS wanted(name, scope)
JOIN engram.memory_names known ON known.tenant = %(tenant)s AND known.scope = wanted.scope
    AND known.name >= wanted.name COLLATE "C" AND known.name < (wanted.name || '.') COLLATE "C"

-- name: changed_since
SELECT m.record::text FROM engram.documents d
JOIN engram.agent_memory m ON m.tenant = d.tenant AND m.id = d.id
WHERE d.tenant = %(tenant)s AND d.scope = %(scope)s AND d.change > %(mark)s AND d.kind = 'memory' ORDER BY d.change

-- name: put_decision
INSERT INTO engram.journal (tenant, seq, at, op, actor, reason, session, ids)
VALUES (%(tenant)s, %(seq)s, %(at)s, %(op)s, %(actor)s, %(reason)s, %(session)s, %(ids)s)

-- name: put_images
INSERT INTO engram.journal_images (tenant, id, seq, at, op, after)
SELECT %(tenant)s, id, %(seq)s, %(at)s, %(op)s, after::json
FROM unnest(%(ids)s::text[], %(images)s::text[]) AS given(id, after)

-- name: next_decision
SELECT nextval('engram.decision_numbers')

-- name: exact
SELECT wanted.hash, wanted.scope, known.record::text
FROM (SELECT DISTINCT hash, scope FROM unnest(%(hashes)s::text[], %(scopes)s::text[]) AS given(hash, scope)) wanted
CROSS JOIN LATERAL (
    SELECT m.record FROM engram.documents d JOIN engram.agent_memory m ON m.tenant = d.tenant AND m.id = d.id
    WHERE d.tenant = %(tenant)s AND d.hash = wanted.hash AND d.hash <> '' AND d.scope = wanted.scope
        AND d.kind = 'memory' AND d.status IN ('active', 'dormant', 'candidate')
    ORDER BY d.status = 'active' DESC, d.n LIMIT 1
) known
