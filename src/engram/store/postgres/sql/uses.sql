-- name: share_uses
SELECT pg_advisory_xact_lock_shared(hashtextextended('engram.uses/' || %(tenant)s, 0))

-- name: next_use
SELECT nextval('engram.use_numbers')

-- name: await_uses
SELECT pg_advisory_xact_lock(hashtextextended('engram.uses/' || %(tenant)s, 0))

-- name: put_use
INSERT INTO engram.memory_uses (tenant, id, position, kind, signal, session, at)
SELECT DISTINCT %(tenant)s, used.id, %(position)s::bigint, %(kind)s, %(signal)s, %(session)s, %(at)s::timestamptz
FROM unnest(%(ids)b::text[]) AS used(id)
WHERE NOT EXISTS (SELECT 1 FROM engram.tombstones t WHERE t.tenant = %(tenant)s AND t.id = used.id)
RETURNING 1

-- name: uses_of
SELECT kind, id, at, session, signal, position FROM engram.memory_uses
WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[]) ORDER BY position, id

-- name: uses_in
SELECT kind, id, at, session, signal, position FROM engram.memory_uses
WHERE tenant = %(tenant)s AND session = %(session)s ORDER BY position

-- name: used_since
SELECT DISTINCT id FROM engram.memory_uses WHERE tenant = %(tenant)s AND position >= %(position)s

-- name: last_use
SELECT kind, id, at, session, signal, position FROM engram.memory_uses
WHERE tenant = %(tenant)s AND kind = %(kind)s AND position = (
    SELECT max(position) FROM engram.memory_uses WHERE tenant = %(tenant)s AND kind = %(kind)s
)

-- name: put_verdict
INSERT INTO engram.gate_verdicts (tenant, at, gate, outcome) VALUES (%(tenant)s, %(at)s, %(gate)s, %(outcome)s)

-- name: verdicts
SELECT gate, outcome FROM engram.gate_verdicts WHERE tenant = %(tenant)s AND at >= %(moment)s ORDER BY at
