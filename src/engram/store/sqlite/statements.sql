-- name: put_doc
INSERT INTO docs (n, id, kind, scope, status, type, domain, parent, position, time, known, valid_from, valid_until,
                  pinned, hash, change, lineage, conflict, critical, role)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (id) DO UPDATE SET
    kind = excluded.kind, scope = excluded.scope, status = excluded.status, type = excluded.type,
    domain = excluded.domain, parent = excluded.parent, position = excluded.position, time = excluded.time,
    known = excluded.known, valid_from = excluded.valid_from, valid_until = excluded.valid_until,
    pinned = excluded.pinned, hash = excluded.hash, change = excluded.change,
    lineage = excluded.lineage, conflict = excluded.conflict, critical = excluded.critical, role = excluded.role

-- name: old_texts
SELECT t.n, t.statement, t.about, t.support, t.cues, t.meaning FROM docs d JOIN texts t ON t.n = d.n WHERE d.id = ?

-- name: known_ids
SELECT d.id FROM json_each(?) j CROSS JOIN docs d ON d.id = j.value

-- name: put_texts
INSERT OR REPLACE INTO texts (n, statement, about, support, cues, meaning) VALUES (?, ?, ?, ?, ?, ?)

-- name: put_words
INSERT INTO words (rowid, statement, about, support, cues) VALUES (?, ?, ?, ?, ?)

-- name: drop_words
INSERT INTO words (words, rowid, statement, about, support, cues) VALUES ('delete', ?, ?, ?, ?, ?)

-- name: put_record
INSERT OR REPLACE INTO records (n, record) VALUES (?, ?)

-- name: put_vector
INSERT OR REPLACE INTO vectors (generation, n, vector) VALUES (?, ?, ?)

-- name: put_name
INSERT OR IGNORE INTO names (name, id, scope) VALUES (?, ?, ?)

-- name: put_tag
INSERT INTO tags (tag, n) VALUES (?, ?)

-- name: put_anchor
INSERT INTO anchors (path, id) VALUES (?, ?)

-- name: put_link
INSERT OR REPLACE INTO links (source, target, type, strength, weight, reinforced) VALUES (?, ?, ?, ?, ?, ?)

-- name: put_image
INSERT OR REPLACE INTO images (id, seq, at, op, month, offset) VALUES (?, ?, ?, ?, ?, ?)

-- name: put_file
INSERT OR REPLACE INTO files (path, mtime_ns, size, inode, ctime_ns, error) VALUES (?, ?, ?, ?, ?, ?)

-- name: put_place
INSERT OR REPLACE INTO places (id, path) VALUES (?, ?)

-- name: raise_number
INSERT INTO numbers (day, last) VALUES (?, ?) ON CONFLICT (day) DO UPDATE SET last = max(last, excluded.last)

-- name: exact
SELECT r.n, r.record FROM docs d INDEXED BY docs_hash JOIN records r ON r.n = d.n
WHERE d.hash = ? AND d.hash <> '' AND d.scope = ? AND d.kind = 'memory'
    AND d.status IN ('active', 'dormant', 'candidate')
ORDER BY d.status = 'active' DESC, d.n DESC LIMIT 1

-- name: same_text
SELECT r.record FROM docs d INDEXED BY docs_hash JOIN records r ON r.n = d.n
WHERE d.hash = ? AND d.hash <> '' AND d.kind = 'memory' AND d.status IN (SELECT value FROM json_each(?)) ORDER BY d.n

-- name: known_hashes
SELECT d.hash FROM json_each(?) j CROSS JOIN docs d INDEXED BY docs_hash ON d.hash = j.value AND d.hash <> ''

-- name: taken_names
SELECT n.name, n.scope FROM json_each(?) j CROSS JOIN names n ON n.name = j.value

-- name: heads
SELECT d.id FROM docs d INDEXED BY docs_conflict
WHERE d.conflict = ? AND d.conflict <> '' AND d.scope = ? AND d.kind = 'memory' AND d.status IN ('active', 'dormant')
ORDER BY d.n

-- name: lineage
SELECT r.record FROM docs d INDEXED BY docs_lineage JOIN records r ON r.n = d.n
WHERE d.lineage = ? AND d.lineage <> '' AND d.kind = 'memory' ORDER BY d.n

-- name: events_of
SELECT r.record FROM docs d INDEXED BY docs_parent JOIN records r ON r.n = d.n
WHERE d.parent = ? AND d.parent <> '' AND d.kind = 'event' AND d.position > ? ORDER BY d.position DESC LIMIT ?

-- name: ledger_sizes
-- Of these ledgers, or of all.
SELECT name, size FROM ledgers WHERE ?1 IS NULL OR name IN (SELECT value FROM json_each(?1))

-- name: ledgers
SELECT DISTINCT parent FROM docs INDEXED BY docs_parent WHERE parent <> '' AND kind = 'event' ORDER BY parent

-- name: changed_since
SELECT r.n, r.record FROM docs d INDEXED BY docs_change JOIN records r ON r.n = d.n WHERE d.change > ? AND d.kind = 'memory' AND d.scope = ? ORDER BY d.change

-- name: by_ref
SELECT d.n, d.id, r.record FROM docs d JOIN records r ON r.n = d.n WHERE d.kind = 'memory' AND d.id = ?

-- name: records_in
-- Of these files.
SELECT p.path, r.record FROM json_each(?) j CROSS JOIN places p ON p.path = j.value
CROSS JOIN docs d ON d.id = p.id CROSS JOIN records r ON r.n = d.n

-- name: by_name
SELECT DISTINCT d.n, d.id, d.status, r.record, d.scope FROM names s JOIN docs d ON d.id = s.id JOIN records r ON r.n = d.n
WHERE s.name = ?

-- name: stands
SELECT d.n, d.parent, d.position, CASE d.parent WHEN '' THEN 0 ELSE
    (SELECT max(l.position) FROM docs l WHERE l.parent = d.parent AND l.parent <> '') END
FROM json_each(?) j CROSS JOIN docs d ON d.n = j.value

-- name: of_kinds
SELECT 1 FROM json_each(?) k CROSS JOIN docs d INDEXED BY docs_scope ON d.kind = k.value LIMIT 1

-- name: with_status
-- Whether there is a document of these kinds with one of these statuses.
SELECT 1 FROM docs INDEXED BY docs_status
WHERE kind IN (SELECT value FROM json_each(?1)) AND status IN (SELECT value FROM json_each(?2)) LIMIT 1

-- name: in_other_projects
-- Whether there is a document of these kinds in a project other than these scopes; looks up every scope once.
WITH RECURSIVE scopes (kind, scope) AS (
    SELECT j.value, (SELECT min(d.scope) FROM docs d WHERE d.kind = j.value) FROM json_each(?1) j
    UNION ALL
    SELECT s.kind, (SELECT min(d.scope) FROM docs d WHERE d.kind = s.kind AND d.scope > s.scope) FROM scopes s
    WHERE s.scope IS NOT NULL
)
SELECT 1 FROM scopes WHERE scope LIKE 'project:%' AND scope NOT IN (SELECT value FROM json_each(?2)) LIMIT 1

-- name: between
SELECT min(f.n), max(l.n) FROM json_each(?) p
LEFT JOIN docs f ON f.n = (SELECT n FROM docs WHERE parent = p.value AND parent <> '' ORDER BY position LIMIT 1)
LEFT JOIN docs l ON l.n = (SELECT n FROM docs WHERE parent = p.value AND parent <> '' ORDER BY position DESC LIMIT 1)

-- name: alone
SELECT d.n, t.statement, t.about, t.support, t.cues, d.parent, d.position, d.time FROM json_each(?) j
CROSS JOIN docs d ON d.n = j.value CROSS JOIN texts t ON t.n = d.n

-- name: together
SELECT d.n, t.statement, t.about, t.support, t.cues, d.parent, d.position, d.time FROM json_each(?) p
CROSS JOIN docs d ON d.parent = json_extract(p.value, '$[0]') AND d.parent <> ''
    AND d.position BETWEEN json_extract(p.value, '$[1]') AND json_extract(p.value, '$[2]')
CROSS JOIN texts t ON t.n = d.n
ORDER BY d.parent, d.position

-- name: said
-- Whether a term occurs in a document of these scopes; assumed for very common terms.
SELECT 1 WHERE EXISTS (
    SELECT 1 FROM (SELECT rowid AS n FROM words WHERE words MATCH ?1 LIMIT ?3) w CROSS JOIN docs d ON d.n = w.n
    WHERE d.scope IN (SELECT value FROM json_each(?2))
) OR (SELECT count(*) FROM (SELECT 1 FROM words WHERE words MATCH ?1 LIMIT ?3)) = ?3

-- name: links_to
SELECT l.source, l.target, l.type, l.strength FROM json_each(?) t CROSS JOIN links l ON l.target = t.value

-- name: stamps
SELECT f.path, f.mtime_ns, f.size, f.inode, f.ctime_ns FROM json_each(?) j
CROSS JOIN docs d ON d.n = j.value JOIN places p ON p.id = d.id JOIN files f ON f.path = p.path

-- name: file_stamps
SELECT f.path, f.mtime_ns, f.size, f.inode, f.ctime_ns FROM json_each(?) j CROSS JOIN files f ON f.path = j.value

-- name: without_vector
-- Of a generation, after a number.
SELECT d.n, d.kind, r.record FROM (
    SELECT n FROM docs WHERE n > ?2 EXCEPT SELECT n FROM vectors WHERE generation = ?1 AND n > ?2 ORDER BY n LIMIT ?3
) m CROSS JOIN docs d ON d.n = m.n CROSS JOIN records r ON r.n = d.n ORDER BY d.n

-- name: changed_without_vector
-- The same of documents changed since a change, of which there are few.
SELECT d.n, d.kind, r.record FROM docs d INDEXED BY docs_change CROSS JOIN records r ON r.n = d.n
WHERE d.change >= ?4 AND d.n > ?2 AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.generation = ?1 AND v.n = d.n)
ORDER BY d.n LIMIT ?3

-- name: unindexed_files
SELECT p.id FROM places p LEFT JOIN docs d ON d.id = p.id WHERE d.id IS NULL LIMIT ?

-- name: entries_without_file
SELECT d.id FROM docs d LEFT JOIN places p ON p.id = d.id
WHERE d.kind = 'memory' AND d.status IN ('active', 'dormant', 'candidate') AND p.id IS NULL LIMIT ?

-- name: incomplete_entries
SELECT d.id FROM docs d LEFT JOIN records r ON r.n = d.n LEFT JOIN texts t ON t.n = d.n
WHERE d.kind = 'memory' AND (r.n IS NULL OR t.n IS NULL) LIMIT ?

-- name: word_counts
SELECT (SELECT count(*) FROM texts), (SELECT count(*) FROM words_docsize)

-- name: sampled_files
WITH numbered AS (
    SELECT d.id, d.n, p.path, row_number() OVER (ORDER BY d.n) AS place, count(*) OVER () AS total
    FROM docs d JOIN places p ON p.id = d.id WHERE d.kind = 'memory'
)
SELECT s.id, s.path, r.record, f.mtime_ns, f.size, f.inode, f.ctime_ns FROM numbered s
JOIN records r ON r.n = s.n JOIN files f ON f.path = s.path WHERE s.place % (1 + s.total / ?) = 0
