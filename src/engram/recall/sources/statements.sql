-- name: known
SELECT source, name, stamp, directory, loaded, title FROM sources WHERE name IN (SELECT value FROM json_each(?))

-- name: number
SELECT source FROM sources WHERE name = ?

-- name: put_source
INSERT INTO sources (name, kind, path, title, stamp, directory, loaded, checked) VALUES (?, ?, ?, ?, ?, ?, ?, ?)

-- name: following
SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = 'docs'), 0) + 1

-- name: put_doc
INSERT INTO docs (n, source, position, section, text, time, vector) VALUES (?, ?, ?, ?, ?, ?, ?)

-- name: put_texts
INSERT INTO texts (n, statement, about, support) VALUES (?, ?, ?, ?)

-- name: put_words
INSERT INTO words (rowid, statement, about, support) VALUES (?, ?, ?, ?)

-- name: texts_of
SELECT t.n, t.statement, t.about, t.support FROM docs d JOIN texts t ON t.n = d.n WHERE d.source = ?

-- name: drop_words
INSERT INTO words (words, rowid, statement, about, support) VALUES ('delete', ?, ?, ?, ?)

-- name: drop_texts
DELETE FROM texts WHERE n IN (SELECT n FROM docs WHERE source = ?)

-- name: drop_docs
DELETE FROM docs WHERE source = ?

-- name: drop_source
DELETE FROM sources WHERE source = ?

-- name: vectors
SELECT n, vector FROM docs WHERE vector IS NOT NULL

-- name: ranges
SELECT j.value, (SELECT n FROM docs WHERE source = j.value ORDER BY position LIMIT 1) AS first,
    (SELECT n FROM docs WHERE source = j.value ORDER BY position DESC LIMIT 1) + 1
FROM json_each(?) j WHERE first IS NOT NULL ORDER BY first

-- name: last
SELECT max(n) FROM docs

-- name: lexical
SELECT rowid, -bm25(words, WEIGHTS) FROM words WHERE words MATCH ? ORDER BY 2 DESC

-- name: passages
SELECT t.n, t.statement, t.about, t.support, d.time, d.vector
FROM json_each(?) j CROSS JOIN texts t ON t.n = j.value JOIN docs d ON d.n = t.n

-- name: found
SELECT d.n, d.source, d.section, d.text, d.time FROM json_each(?) j CROSS JOIN docs d ON d.n = j.value

-- name: unchecked
SELECT source, name, path FROM sources WHERE checked < ? ORDER BY checked LIMIT ?

-- name: checked
UPDATE sources SET checked = ? WHERE source IN (SELECT value FROM json_each(?))

-- name: total
SELECT count(*) FROM docs
