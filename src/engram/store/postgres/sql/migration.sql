-- The planner has no statistics of a tenant that was just created, takes its tables for empty and would scan them for each row.
-- OFFSET 0 forces lookups by key.

-- name: record_counts
SELECT
    (SELECT count(*) FROM engram.agent_memory WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.journal WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.journal_images WHERE tenant = %(tenant)s),
    (SELECT count(DISTINCT position) FROM engram.memory_uses WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.agent_events WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.agent_sessions WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.gate_verdicts WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.tombstones WHERE tenant = %(tenant)s)

-- name: task_counts
SELECT (SELECT count(*) FROM engram.agent_task_runs WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.memory_jobs WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.named_states WHERE tenant = %(tenant)s)

-- name: mark_of_all
SELECT
    (SELECT max(seq) FROM engram.journal WHERE tenant = %(tenant)s),
    (SELECT max(position) FROM engram.memory_uses WHERE tenant = %(tenant)s),
    (SELECT sum(seq) FROM engram.ledger_heads WHERE tenant = %(tenant)s),
    (SELECT array[count(*), count(ended), sum(length(task) + length(summary)), sum(summary_through)]
     FROM engram.agent_sessions WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.gate_verdicts WHERE tenant = %(tenant)s),
    (SELECT md5(string_agg(md5(record::text), '' ORDER BY id)) FROM engram.agent_task_runs WHERE tenant = %(tenant)s),
    (SELECT count(*) FROM engram.agent_checkpoints WHERE tenant = %(tenant)s),
    (SELECT md5(string_agg(md5(record::text), '' ORDER BY id)) FROM engram.memory_jobs WHERE tenant = %(tenant)s),
    (SELECT md5(string_agg(md5(name || value::text), '' ORDER BY name)) FROM engram.named_states WHERE tenant = %(tenant)s)

-- name: last_decision
-- Transaction numbers are each server's own: both questions go to the one with the tenant's journal.
SELECT coalesce(max(seq), 0), pg_snapshot_xmax(pg_current_snapshot())::text FROM engram.journal WHERE tenant = %(tenant)s

-- name: all_ended
SELECT pg_snapshot_xmin(pg_current_snapshot()) >= %(horizon)s::xid8, max(seq) FROM engram.journal WHERE tenant = %(tenant)s

-- name: last_position
SELECT coalesce(max(position), -1) FROM engram.memory_uses WHERE tenant = %(tenant)s

-- name: decisions_behind
SELECT j.seq, j.at, j.op, j.actor, j.reason, j.session, cardinality(j.ids), (
    SELECT coalesce(sum(held.size), 0) FROM unnest(j.ids) AS about(id) CROSS JOIN LATERAL (
        SELECT pg_column_size(i.after) AS size FROM engram.journal_images i
        WHERE i.tenant = %(tenant)s AND i.id = about.id AND i.seq = j.seq OFFSET 0
    ) held
)
FROM engram.journal j WHERE j.tenant = %(tenant)s AND j.seq > %(after)s AND j.seq <= %(upto)s ORDER BY j.seq LIMIT %(limit)s

-- name: images_of
-- `stored`: the memory as it is now if this is its latest image, empty where it is the image itself.
SELECT j.seq, about.id, held.after, held.stored FROM engram.journal j
CROSS JOIN LATERAL unnest(j.ids) WITH ORDINALITY AS about(id, place)
CROSS JOIN LATERAL (
    SELECT i.after::text AS after, CASE WHEN i.after IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM engram.journal_images l WHERE l.tenant = %(tenant)s AND l.id = i.id AND l.seq > i.seq
    ) THEN (
        SELECT CASE WHEN m.record::text = i.after::text THEN '' ELSE m.record::text END
        FROM engram.agent_memory m WHERE m.tenant = %(tenant)s AND m.id = i.id
    ) END AS stored
    FROM engram.journal_images i WHERE i.tenant = %(tenant)s AND i.id = about.id AND i.seq = j.seq OFFSET 0
) held
WHERE j.tenant = %(tenant)s AND j.seq = ANY(%(seqs)b::bigint[]) ORDER BY j.seq, about.place

-- name: positions_behind
SELECT DISTINCT position FROM engram.memory_uses WHERE tenant = %(tenant)s AND position <= %(upto)s ORDER BY position

-- name: uses_behind
SELECT position, min(kind), min(signal), min(session), min(at), array_agg(id ORDER BY id) FROM engram.memory_uses
WHERE tenant = %(tenant)s AND position > %(after)s AND position <= %(upto)s
GROUP BY position ORDER BY position LIMIT %(limit)s

-- name: vectors_of
SELECT d.id, d.meaning, held.vector FROM engram.documents d
CROSS JOIN LATERAL (
    SELECT halfvec_send(v.vector) AS vector FROM engram.memory_vectors v
    WHERE v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = d.n OFFSET 0
) held
WHERE d.tenant = %(tenant)s AND d.id = ANY(%(ids)b::text[])

-- name: events_between
SELECT held.record FROM unnest(%(sessions)b::text[], %(after)b::bigint[], %(upto)b::bigint[]) AS wanted(session, after, upto)
CROSS JOIN LATERAL (
    SELECT e.record::text AS record, e.seq FROM engram.agent_events e
    WHERE e.tenant = %(tenant)s AND e.session = wanted.session AND e.seq > wanted.after AND e.seq <= wanted.upto OFFSET 0
) held
ORDER BY wanted.session, held.seq

-- name: all_verdicts
SELECT at, gate, outcome FROM engram.gate_verdicts WHERE tenant = %(tenant)s ORDER BY at

-- name: all_tombstones
SELECT id FROM engram.tombstones WHERE tenant = %(tenant)s

-- name: all_numbers
SELECT day, last FROM engram.id_numbers WHERE tenant = %(tenant)s

-- name: lock_migration_state
SELECT value FROM engram.store_facts WHERE tenant = %(tenant)s AND key = 'moving' FOR UPDATE

-- name: migration_state
SELECT value FROM engram.store_facts WHERE tenant = %(tenant)s AND key = 'moving'

-- name: next_decisions
SELECT nextval('engram.decision_numbers') FROM generate_series(1, %(count)s)

-- name: next_uses
SELECT nextval('engram.use_numbers') FROM generate_series(1, %(count)s)

-- name: load_decisions
INSERT INTO engram.journal (tenant, seq, at, op, actor, reason, session, ids)
SELECT %(tenant)s, seq, at, op, actor, reason, session, ARRAY(SELECT json_array_elements_text(ids::json))
FROM unnest(%(seqs)b::bigint[], %(ats)b::timestamptz[], %(ops)b::text[], %(actors)b::text[], %(reasons)b::text[],
    %(sessions)b::text[], %(ids)b::text[]) AS given(seq, at, op, actor, reason, session, ids)
RETURNING 1

-- name: load_images
INSERT INTO engram.journal_images (tenant, id, seq, at, op, after)
SELECT %(tenant)s, id, seq, at, op, after::json
FROM unnest(%(ids)b::text[], %(seqs)b::bigint[], %(ats)b::timestamptz[], %(ops)b::text[], %(images)b::text[])
    AS given(id, seq, at, op, after)
RETURNING 1

-- name: load_uses
INSERT INTO engram.memory_uses (tenant, id, position, kind, signal, session, at)
SELECT %(tenant)s, id, position, kind, signal, session, at
FROM unnest(%(ids)b::text[], %(positions)b::bigint[], %(kinds)b::text[], %(signals)b::text[], %(sessions)b::text[],
    %(ats)b::timestamptz[]) AS given(id, position, kind, signal, session, at)
RETURNING 1

-- name: load_events
INSERT INTO engram.agent_events (tenant, id, session, seq, key, record)
SELECT %(tenant)s, id, session, seq, key, record::json
FROM unnest(%(ids)b::text[], %(sessions)b::text[], %(seqs)b::bigint[], %(keys)b::text[], %(records)b::text[])
    AS given(id, session, seq, key, record)
RETURNING 1

-- name: load_heads
INSERT INTO engram.ledger_heads (tenant, session, seq, digest)
SELECT %(tenant)s, session, seq, digest FROM unnest(%(sessions)b::text[], %(seqs)b::bigint[], %(digests)b::text[])
    AS given(session, seq, digest)
ON CONFLICT (tenant, session) DO UPDATE SET seq = excluded.seq, digest = excluded.digest

-- name: drop_sessions
DELETE FROM engram.agent_sessions WHERE tenant = %(tenant)s

-- name: drop_verdicts
DELETE FROM engram.gate_verdicts WHERE tenant = %(tenant)s

-- name: memories_among
SELECT id FROM engram.agent_memory WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[])

-- name: analyze
ANALYZE engram.documents, engram.postings, engram.terms, engram.memory_vectors, engram.agent_memory, engram.agent_events,
    engram.agent_sessions, engram.journal, engram.journal_images, engram.memory_names, engram.memory_relations,
    engram.memory_uses, engram.agent_task_runs, engram.agent_checkpoints, engram.memory_jobs, engram.named_states
