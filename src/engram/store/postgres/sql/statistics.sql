-- name: statistics
SELECT counted_to, documents, length,
    (SELECT count(*) FROM (
        SELECT 1 FROM engram.documents d WHERE d.tenant = %(tenant)s AND d.n > s.counted_to ORDER BY d.n LIMIT greatest(%(enough)s, s.documents / 50 + 1)
    ) pending)
FROM engram.term_statistics s WHERE s.tenant = %(tenant)s

-- name: begin_statistics
INSERT INTO engram.term_statistics (tenant, counted_to, documents, length) VALUES (%(tenant)s, 0, 0, 0)
ON CONFLICT (tenant) DO NOTHING

-- name: lock_statistics
SELECT counted_to FROM engram.term_statistics WHERE tenant = %(tenant)s FOR UPDATE SKIP LOCKED

-- name: await_statistics
SELECT counted_to FROM engram.term_statistics WHERE tenant = %(tenant)s FOR UPDATE

-- name: uncounted
-- The next documents to count, and the number of their terms.
SELECT array_agg(f.n), coalesce(sum(f.length), 0) FROM (
    SELECT d.n, d.length FROM engram.documents d
    WHERE d.tenant = %(tenant)s AND d.n > %(counted_to)s ORDER BY d.n LIMIT %(slice)s
) f

-- name: count_terms
-- Three statements and not one with a writing WITH, which only a single server can carry out as a whole. The rows come from the
-- documents' own shard, with their tenant, so that it is written where it is read.
INSERT INTO engram.terms AS known (tenant, term, documents)
SELECT d.tenant, w.term, count(*) FROM engram.documents d
CROSS JOIN LATERAL (
    SELECT DISTINCT term FROM string_to_table(d.statement || ' ' || d.about || ' ' || d.support || ' ' || d.cues, ' ') AS term
) w
WHERE d.tenant = %(tenant)s AND d.n = ANY(%(numbers)b::bigint[]) AND w.term <> '' AND w.term <> '?'
GROUP BY d.tenant, w.term ORDER BY w.term
ON CONFLICT (tenant, term) DO UPDATE SET documents = known.documents + excluded.documents

-- name: move_statistics
UPDATE engram.term_statistics
SET counted_to = %(upto)s, documents = documents + %(documents)s, length = length + %(length)s WHERE tenant = %(tenant)s

-- name: frequencies
-- A term of documents not yet counted occurs at least once.
SELECT wanted.term, coalesce(counted.documents, uncounted.documents) FROM unnest(%(terms)b::text[]) AS wanted(term)
LEFT JOIN LATERAL (
    SELECT t.documents FROM engram.terms t WHERE t.tenant = %(tenant)s AND t.term = wanted.term OFFSET 0
) counted ON true
LEFT JOIN LATERAL (
    SELECT 1 AS documents FROM engram.postings p
    WHERE p.tenant = %(tenant)s AND p.term = wanted.term AND counted.documents IS NULL LIMIT 1
) uncounted ON true
WHERE counted.documents IS NOT NULL OR uncounted.documents IS NOT NULL
