-- What Engram wrote to the tables that schema 2 added, for the rows of schema 1. The vectors are stand-ins of the right length.
INSERT INTO engram.documents (tenant, n, id, kind, scope, status, type, domain, parent, position, time, known, valid_from, valid_until, pinned, hash, change, tags, statement, about, support, length, meaning) VALUES
    ('acme', 1, 'ENG-2026-0301-001', 'memory', 'project:acme', 'active', 'factual', '', '', 0, '2026-03-01 09:00:00.001Z', '2026-03-01 09:00:00.001Z', NULL, NULL, false, '9b03f5bf362e1c6d9ebc870fd05757195481a5636e5cab5046d49f4ef43e9d73', 1, '{server}', 'the stage server is call nightshift', 'server', '', 7, '\x68ef87bc0f9a7e40'),
    ('acme', 2, 'ENG-2026-0301-002', 'memory', 'project:acme', 'active', 'convention', '', '', 0, '2026-03-01 09:00:00.003Z', '2026-03-01 09:00:00.003Z', NULL, NULL, false, '522fcaae1c6e6ae074f1f267dfcdeb0647a5649888fcaf8612e46cabaa935753', 2, '{}', 'deploy on tuesday onli', 'tuesday', '', 5, '\x61cbe2da2bb93f06'),
    ('acme', 3, 'EVT-20260301-c0a57ea5711e', 'event', 'project:acme', 'active', 'message', '', 'S-20260301-090000-243452', 1, '2026-03-01 09:00:00.008Z', '2026-03-01 09:00:00.008Z', NULL, NULL, false, '', 0, '{}', 'ship it pleas', 'user', '', 4, '\x383e0be69df3822b'),
    ('acme', 4, 'EVT-20260301-f3f44703d943', 'event', 'project:acme', 'active', 'message', '', 'S-20260301-090000-243452', 2, '2026-03-01 09:00:00.009Z', '2026-03-01 09:00:00.009Z', NULL, NULL, false, '', 0, '{}', 'ship to nightshift', 'assist', '', 4, '\xb5a3aaae36b3a345');
INSERT INTO engram.postings (tenant, term, n, statement, about, support, length)
SELECT d.tenant, w.term, d.n, count(*) FILTER (WHERE w.field = 1), count(*) FILTER (WHERE w.field = 2), 0, d.length
FROM engram.documents d CROSS JOIN LATERAL (
    SELECT term, 1 AS field FROM string_to_table(d.statement, ' ') AS term
    UNION ALL SELECT term, 2 FROM string_to_table(d.about, ' ') AS term
) w GROUP BY d.tenant, w.term, d.n, d.length;
INSERT INTO engram.terms (tenant, term, documents) SELECT tenant, term, count(*) FROM engram.postings GROUP BY tenant, term;
INSERT INTO engram.term_statistics (tenant, counted_to, documents, length) VALUES ('acme', 4, 4, 20);
INSERT INTO engram.memory_vectors (tenant, generation, n, kind, scope, vector)
SELECT tenant, 1, n, kind, scope, ('[' || repeat('0,', n::integer) || '1' || repeat(',0', 255 - n::integer) || ']')::halfvec
FROM engram.documents;
SELECT setval('engram.document_numbers', 4);
