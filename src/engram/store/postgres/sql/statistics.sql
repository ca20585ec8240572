-- name: statistics
SELECT counted_to, documents, length,
    (SELECT count(*) FROM (
        SELECT 1 FROM engram.documents d WHERE d.tenant = s.tenant AND d.n > s.counted_to ORDER BY d.n LIMIT greatest(%(enough)s, s.documents / 50 + 1)
    ) pending)
FROM engram.term_statistics s WHERE s.tenant = %(tenant)s

-- name: begin_statistics
INSERT INTO engram.term_statistics (tenant, counted_to, documents, length) VALUES (%(tenant)s, 0, 0, 0)
ON CONFLICT (tenant) DO NOTHING

-- name: lock_statistics
SELECT counted_to FROM engram.term_statistics WHERE tenant = %(tenant)s FOR UPDATE SKIP LOCKED

-- name: await_statistics
SELECT counted_to FROM engram.term_statistics WHERE tenant = %(tenant)s FOR UPDATE

-- name: count_terms
WITH fresh AS MATERIALIZED (
    SELECT d.n, d.statement || ' ' || d.about || ' ' || d.support AS words, d.length FROM engram.documents d
    WHERE d.tenant = %(tenant)s AND d.n > %(counted_to)s ORDER BY d.n LIMIT %(slice)s
), counted AS (
    INSERT INTO engram.terms AS known (tenant, term, documents)
    SELECT %(tenant)s, w.term, count(*) FROM (
        SELECT DISTINCT f.n, term FROM fresh f, string_to_table(f.words, ' ') AS term WHERE term <> '' AND term <> '?'
    ) w GROUP BY w.term ORDER BY w.term
    ON CONFLICT (tenant, term) DO UPDATE SET documents = known.documents + excluded.documents
)
UPDATE engram.term_statistics s SET counted_to = f.upto, documents = s.documents + f.documents, length = s.length + f.length
FROM (SELECT max(n) AS upto, count(*) AS documents, coalesce(sum(length), 0) AS length FROM fresh) f
WHERE s.tenant = %(tenant)s AND f.documents > 0
RETURNING f.documents

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
