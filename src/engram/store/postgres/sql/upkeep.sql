-- name: statuses
SELECT status, count(*) FROM engram.documents WHERE tenant = %(tenant)s AND kind = 'memory' GROUP BY status

-- name: kinds
SELECT kind, count(*) FROM engram.documents WHERE tenant = %(tenant)s GROUP BY kind

-- name: vector_count
SELECT count(*) FROM engram.memory_vectors WHERE tenant = %(tenant)s AND generation = %(generation)s

-- name: decision_count
SELECT count(*) FROM engram.journal WHERE tenant = %(tenant)s

-- name: without_vector
-- One key lookup for each document, even if the planner has no statistics of the tenant yet.
SELECT d.n, d.kind, d.scope, coalesce(
    (SELECT m.record FROM engram.agent_memory m WHERE d.kind = 'memory' AND m.tenant = %(tenant)s AND m.id = d.id),
    (SELECT e.record FROM engram.agent_events e WHERE d.kind = 'event' AND e.tenant = %(tenant)s AND e.id = d.id)
)::text, d.meaning FROM engram.documents d
WHERE d.tenant = %(tenant)s AND d.n > %(after)s AND (
    SELECT v.n FROM engram.memory_vectors v WHERE v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = d.n
) IS NULL ORDER BY d.n LIMIT %(limit)s

-- name: lacks_vector
SELECT 1 FROM engram.documents d WHERE d.tenant = %(tenant)s AND (
    SELECT v.n FROM engram.memory_vectors v WHERE v.tenant = %(tenant)s AND v.generation = %(generation)s AND v.n = d.n
) IS NULL LIMIT 1

-- name: meanings
SELECT n, meaning, scope FROM engram.documents WHERE tenant = %(tenant)s AND n = ANY(%(numbers)b::bigint[])
ORDER BY n FOR UPDATE

-- name: drop_generation_slice
DELETE FROM engram.memory_vectors v USING (
    SELECT n, generation FROM engram.memory_vectors WHERE tenant = %(tenant)s AND generation <> %(generation)s LIMIT 5000
) old WHERE v.tenant = %(tenant)s AND v.generation = old.generation AND v.n = old.n RETURNING v.n

-- name: memory_slice
SELECT id, record::text FROM engram.agent_memory WHERE tenant = %(tenant)s AND id > %(after)s ORDER BY id LIMIT %(limit)s

-- name: foldable_slice
-- Text outside of ASCII, written as it is or escaped, and HTML entities.
SELECT id, record::text FROM engram.agent_memory
WHERE tenant = %(tenant)s AND id > %(after)s AND record::text ~ '[^ -~]|\\u[0-9a-f]{4}|&'
ORDER BY id LIMIT %(limit)s

-- name: event_slice
SELECT id, record::text FROM engram.agent_events WHERE tenant = %(tenant)s AND id > %(after)s ORDER BY id LIMIT %(limit)s

-- name: forget_statistics
DELETE FROM engram.term_statistics WHERE tenant = %(tenant)s

-- name: forget_terms
DELETE FROM engram.terms WHERE tenant = %(tenant)s

-- name: indexes
SELECT c.relname, coalesce(i.indisvalid, false) FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relnamespace = 'engram'::regnamespace

-- name: nearest_indexes
SELECT n.nspname, c.relname, i.indisvalid FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
JOIN pg_index i ON i.indexrelid = c.oid
WHERE c.relkind = 'i' AND starts_with(c.relname, %(beginning)s)

-- name: try_turn
SELECT pg_try_advisory_xact_lock(hashtextextended('engram.nearest', 0))

-- name: has_vectors
SELECT 1 FROM engram.memory_vectors WHERE tenant = %(tenant)s LIMIT 1

-- name: is_partitioned
SELECT c.relkind = 'p' FROM pg_class c WHERE c.oid = 'engram.memory_vectors'::regclass

-- name: vectors_partition
-- Numbers of tables are each server's own: this is asked only where the vectors are partitioned within one.
SELECT n.nspname, c.relname FROM (
    SELECT tableoid FROM engram.memory_vectors WHERE tenant = %(tenant)s LIMIT 1
) held JOIN pg_class c ON c.oid = held.tableoid JOIN pg_namespace n ON n.oid = c.relnamespace

-- name: unsecured
SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'tenant'
WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') AND NOT (c.relrowsecurity AND c.relforcerowsecurity)
ORDER BY c.relname

-- name: role
SELECT current_user, rolsuper, rolbypassrls, pg_is_in_recovery(), current_setting('transaction_read_only')::boolean
FROM pg_roles WHERE rolname = current_user

-- name: lacking
SELECT c.relname, array_agg(p.what ORDER BY p.place) FROM pg_class c
CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE', 'USAGE']) WITH ORDINALITY AS p(what, place)
WHERE c.relnamespace = 'engram'::regnamespace AND c.relname <> 'schema_versions'
    AND CASE WHEN c.relkind = 'S' THEN p.what = 'USAGE' AND NOT has_sequence_privilege(c.oid, p.what)
        WHEN c.relkind IN ('r', 'p') THEN p.what <> 'USAGE' AND NOT has_table_privilege(c.oid, p.what) ELSE false END
GROUP BY c.relname ORDER BY c.relname

-- name: writable
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p')
    AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE')

-- name: extension
SELECT extversion FROM pg_extension WHERE extname = 'vector'

-- name: old_images
-- Given are the memories that were taken out of use, each with the decision that did it, which stays with what follows.
SELECT count(*) FROM engram.journal_images i
LEFT JOIN unnest(%(ids)b::text[], %(since)b::bigint[]) AS kept(id, seq) ON kept.id = i.id
WHERE i.tenant = %(tenant)s AND i.at < %(cutoff)s AND i.op <> 'purge' AND (kept.seq IS NULL OR i.seq < kept.seq)
    AND EXISTS (SELECT 1 FROM engram.journal_images l WHERE l.tenant = %(tenant)s AND l.id = i.id AND l.seq > i.seq)

-- name: drop_old_images
DELETE FROM engram.journal_images i WHERE i.tenant = %(tenant)s AND i.at < %(cutoff)s AND i.op <> 'purge'
    AND NOT EXISTS (
        SELECT 1 FROM unnest(%(ids)b::text[], %(since)b::bigint[]) AS kept(id, seq) WHERE kept.id = i.id AND i.seq >= kept.seq
    )
    AND EXISTS (SELECT 1 FROM engram.journal_images l WHERE l.tenant = %(tenant)s AND l.id = i.id AND l.seq > i.seq)

-- name: taken_out
SELECT DISTINCT d.id FROM engram.documents d JOIN engram.journal_images i ON i.tenant = %(tenant)s AND i.id = d.id
WHERE d.tenant = %(tenant)s AND d.status = ANY(%(statuses)b::text[]) AND i.at < %(cutoff)s

-- name: drop_empty_decisions
DELETE FROM engram.journal j WHERE j.tenant = %(tenant)s AND j.at < %(cutoff)s AND j.op NOT IN ('ledger', 'redact')
    AND NOT EXISTS (SELECT 1 FROM engram.journal_images i WHERE i.tenant = %(tenant)s AND i.id = ANY(j.ids) AND i.seq = j.seq)

-- name: old_uses
SELECT DISTINCT to_char(at AT TIME ZONE 'UTC', 'YYYY-MM') AS month FROM engram.memory_uses
WHERE tenant = %(tenant)s AND at < %(cutoff)s ORDER BY month

-- name: drop_old_uses
DELETE FROM engram.memory_uses WHERE tenant = %(tenant)s AND at < %(cutoff)s

-- name: old_ledgers
SELECT h.session FROM engram.ledger_heads h JOIN engram.agent_sessions s ON s.tenant = %(tenant)s AND s.id = h.session
WHERE h.tenant = %(tenant)s AND s.ended < %(cutoff)s ORDER BY h.session

-- name: ledger_documents
SELECT n, id FROM engram.documents WHERE tenant = %(tenant)s AND kind = 'event' AND parent = ANY(%(sessions)b::text[]) AND parent <> ''

-- name: drop_ledgers
DELETE FROM engram.agent_events WHERE tenant = %(tenant)s AND session = ANY(%(sessions)b::text[])

-- name: drop_heads
DELETE FROM engram.ledger_heads WHERE tenant = %(tenant)s AND session = ANY(%(sessions)b::text[])

-- name: quoting_events
SELECT record::text FROM engram.agent_events
WHERE tenant = %(tenant)s AND EXISTS (SELECT 1 FROM unnest(%(needles)b::text[]) AS needle WHERE strpos(record::text, needle) > 0)

-- name: quoting_sessions
SELECT id, task, scopes, started, ended, summary, summary_through, summary_style, summary_by
FROM engram.agent_sessions
WHERE tenant = %(tenant)s AND EXISTS (
    SELECT 1 FROM unnest(%(texts)b::text[]) AS said WHERE strpos(task, said) > 0 OR strpos(summary, said) > 0
)
FOR UPDATE

-- name: blank_images
UPDATE engram.journal_images SET after = NULL WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[]) AND after IS NOT NULL
RETURNING id

-- name: blank_reasons
-- Who decided stays by kind, where nothing else was decided with it: the name of a document goes with its facts.
UPDATE engram.journal j SET reason = '', actor = CASE WHEN EXISTS (
    SELECT FROM unnest(j.ids) other WHERE other <> ALL(%(ids)b::text[])
        AND NOT EXISTS (SELECT FROM engram.tombstones t WHERE t.tenant = %(tenant)s AND t.id = other)
) THEN actor ELSE split_part(actor, ':', 1) END
WHERE tenant = %(tenant)s AND ids && %(ids)b::text[]

-- name: quoting_reasons
-- With the scopes of the memories it was about.
SELECT seq, reason, ARRAY(
    SELECT coalesce(i.after ->> 'scope', '') FROM engram.journal_images i
    WHERE i.tenant = %(tenant)s AND i.id = ANY(j.ids) AND i.seq = j.seq AND i.after IS NOT NULL
) FROM engram.journal j WHERE tenant = %(tenant)s AND op NOT IN ('ledger', 'redact') AND reason <> ''
    AND EXISTS (SELECT FROM unnest(%(texts)b::text[]) said WHERE strpos(reason, said) > 0)

-- name: blank_reason
UPDATE engram.journal SET reason = %(reason)s WHERE tenant = %(tenant)s AND seq = %(seq)s

-- name: put_tombstones
INSERT INTO engram.tombstones (tenant, id) SELECT %(tenant)s, id FROM unnest(%(ids)b::text[]) AS id ON CONFLICT DO NOTHING

-- name: drop_uses
DELETE FROM engram.memory_uses WHERE tenant = %(tenant)s AND id = ANY(%(ids)b::text[])

-- name: uncount_terms
-- Terms of changed or uncounted documents were never counted; a term that still occurs counts at least once.
UPDATE engram.terms t SET documents = greatest(t.documents - 1, 1) FROM (SELECT DISTINCT term FROM unnest(%(terms)b::text[]) AS term) w
WHERE t.tenant = %(tenant)s AND t.term = w.term

-- name: drop_gone_terms
DELETE FROM engram.terms t USING unnest(%(terms)b::text[]) AS gone(term)
WHERE t.tenant = %(tenant)s AND t.term = gone.term
    AND NOT EXISTS (SELECT 1 FROM engram.postings p WHERE p.tenant = %(tenant)s AND p.term = t.term)

-- name: still_quoted
SELECT id, scope, words FROM (
    SELECT id, scope, record::text AS words FROM engram.agent_memory WHERE tenant = %(tenant)s
    UNION ALL SELECT e.id, coalesce(d.scope, ''), e.record::text FROM engram.agent_events e
        LEFT JOIN engram.documents d ON d.tenant = %(tenant)s AND d.id = e.id WHERE e.tenant = %(tenant)s
    UNION ALL SELECT id, coalesce(after ->> 'scope', ''), after::text FROM engram.journal_images WHERE tenant = %(tenant)s AND after IS NOT NULL
    UNION ALL SELECT 'decision ' || j.seq || ' of the journal', coalesce((
        SELECT max(i.after ->> 'scope') FROM engram.journal_images i WHERE i.tenant = %(tenant)s AND i.id = ANY(j.ids) AND i.seq = j.seq
    ), ''), to_json(j.reason || E'\n' || j.actor)::text FROM engram.journal j WHERE j.tenant = %(tenant)s
    UNION ALL SELECT id, coalesce(scopes[1], ''), to_json(task || E'\n' || summary)::text FROM engram.agent_sessions WHERE tenant = %(tenant)s
    UNION ALL SELECT id, coalesce(record ->> 'scope', ''), record::text FROM engram.agent_task_runs WHERE tenant = %(tenant)s
    UNION ALL SELECT c.task, coalesce(t.record ->> 'scope', ''), c.record::text FROM engram.agent_checkpoints c
        LEFT JOIN engram.agent_task_runs t ON t.tenant = %(tenant)s AND t.id = c.task WHERE c.tenant = %(tenant)s
    UNION ALL SELECT id, coalesce(record ->> 'scope', ''), record::text FROM engram.memory_jobs WHERE tenant = %(tenant)s
) held
WHERE EXISTS (SELECT FROM unnest(%(needles)b::text[]) needle WHERE strpos(held.words, needle) > 0)
ORDER BY id

-- name: document_count
SELECT count(*) FROM engram.documents WHERE tenant = %(tenant)s

-- name: record_count
SELECT (SELECT count(*) FROM engram.agent_memory WHERE tenant = %(tenant)s)
    + (SELECT count(*) FROM engram.agent_events WHERE tenant = %(tenant)s)

-- name: stray_documents
SELECT d.n FROM engram.documents d WHERE d.tenant = %(tenant)s
    AND NOT EXISTS (SELECT 1 FROM engram.agent_memory m WHERE m.tenant = %(tenant)s AND m.id = d.id)
    AND NOT EXISTS (SELECT 1 FROM engram.agent_events e WHERE e.tenant = %(tenant)s AND e.id = d.id) ORDER BY d.n LIMIT %(limit)s

-- name: unindexed_memories
SELECT m.id FROM engram.agent_memory m WHERE m.tenant = %(tenant)s
    AND NOT EXISTS (SELECT 1 FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.id = m.id) ORDER BY m.id LIMIT %(limit)s
