-- name: lock_ledger
INSERT INTO engram.ledger_heads AS known (tenant, session, seq, digest) VALUES (%(tenant)s, %(session)s, 0, '')
ON CONFLICT (tenant, session) DO UPDATE SET seq = known.seq
RETURNING seq, digest

-- name: event_at
SELECT record::text FROM engram.agent_events WHERE tenant = %(tenant)s AND session = %(session)s AND seq = %(seq)s

-- name: move_head
UPDATE engram.ledger_heads SET seq = %(seq)s, digest = %(digest)s WHERE tenant = %(tenant)s AND session = %(session)s

-- name: events_by_key
SELECT key, record::text FROM engram.agent_events
WHERE tenant = %(tenant)s AND session = %(session)s AND key = ANY(%(keys)b::text[]) AND key <> ''

-- name: put_events
INSERT INTO engram.agent_events (tenant, id, session, seq, key, record)
SELECT %(tenant)s, id, %(session)s, seq, key, record::json
FROM unnest(%(ids)b::text[], %(seqs)b::bigint[], %(keys)b::text[], %(records)b::text[]) AS given(id, seq, key, record)
RETURNING 1

-- name: event
SELECT record::text FROM engram.agent_events WHERE tenant = %(tenant)s AND id = %(id)s

-- name: events_of
SELECT record::text FROM engram.agent_events WHERE tenant = %(tenant)s AND session = %(session)s AND seq > %(after)s
ORDER BY seq DESC LIMIT %(limit)s

-- name: blank_events
UPDATE engram.agent_events e SET key = '', record = given.record::json
FROM unnest(%(ids)b::text[], %(records)b::text[]) AS given(id, record) WHERE e.tenant = %(tenant)s AND e.id = given.id

-- name: ledgers
SELECT h.session, h.seq, h.digest FROM engram.ledger_heads h WHERE h.tenant = %(tenant)s AND h.session > %(after)s
ORDER BY h.session LIMIT 500

-- name: headless
-- Ledgers whose head is gone.
SELECT DISTINCT e.session FROM engram.agent_events e WHERE e.tenant = %(tenant)s AND NOT EXISTS (
    SELECT 1 FROM engram.ledger_heads h WHERE h.tenant = %(tenant)s AND h.session = e.session
)

-- name: rows_of
SELECT id, seq, key, record::text FROM engram.agent_events WHERE tenant = %(tenant)s AND session = %(session)s ORDER BY seq

-- name: linked_checkpoints
-- The checkpoints of all ledgers, in order.
SELECT session, reason FROM engram.journal WHERE tenant = %(tenant)s AND op = 'ledger' ORDER BY seq

-- name: redactions
SELECT reason FROM engram.journal WHERE tenant = %(tenant)s AND op = 'redact'

-- name: newest_anchor
-- The newest checkpoint of any ledger.
SELECT session, reason FROM engram.journal WHERE tenant = %(tenant)s AND op = 'ledger' ORDER BY seq DESC LIMIT 1

-- name: anchors
-- Every checkpoint of each ledger since it was last pruned, and the digest of the event that is there now.
SELECT a.session, a.reason, (
    SELECT e.record ->> 'digest' FROM engram.agent_events e
    WHERE e.tenant = %(tenant)s AND e.session = a.session AND e.seq = substring(a.reason FROM '^[0-9]{1,18} ')::bigint
)
FROM (
    SELECT j.session, j.seq, j.reason,
        max(j.seq) FILTER (WHERE starts_with(j.reason, '0 pruned')) OVER (PARTITION BY j.session) AS let_go
    FROM engram.journal j WHERE j.tenant = %(tenant)s AND j.op = 'ledger'
) a
WHERE a.let_go IS NULL OR a.seq > a.let_go
ORDER BY a.session, a.seq

-- name: save_session
-- What a session is about never changes but to nothing: a late save must not bring back what was purged from it.
INSERT INTO engram.agent_sessions AS known (tenant, id, task, scopes, started, ended, summary, summary_through, summary_style, summary_by)
VALUES (%(tenant)s, %(id)s, %(task)s, %(scopes)s, %(started)s, %(ended)s, %(summary)s, %(through)s, %(style)s, %(by)s)
ON CONFLICT (tenant, id) DO UPDATE SET task = CASE WHEN excluded.task = '' THEN '' ELSE known.task END, ended = excluded.ended,
    summary = excluded.summary, summary_through = excluded.summary_through, summary_style = excluded.summary_style, summary_by = excluded.summary_by

-- name: blank_session
UPDATE engram.agent_sessions SET task = %(task)s, summary = %(summary)s WHERE tenant = %(tenant)s AND id = %(id)s

-- name: session
SELECT id, task, scopes, started, ended, summary, summary_through, summary_style, summary_by
FROM engram.agent_sessions WHERE tenant = %(tenant)s AND id = %(id)s

-- name: sessions
SELECT id, task, scopes, started, ended, summary, summary_through, summary_style, summary_by
FROM engram.agent_sessions WHERE tenant = %(tenant)s AND (%(any)s OR scope = ANY(%(scopes)b::text[]))
ORDER BY started DESC, id LIMIT %(limit)s
