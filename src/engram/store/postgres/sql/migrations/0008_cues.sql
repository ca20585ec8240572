-- Cues: a fourth field of the index. The key of the postings includes it, so that it still answers a query alone.
ALTER TABLE engram.documents ADD COLUMN cues text COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE engram.postings ADD COLUMN cues smallint NOT NULL DEFAULT 0;
ALTER TABLE engram.postings DROP CONSTRAINT postings_pkey;
ALTER TABLE engram.postings ADD CONSTRAINT postings_pkey PRIMARY KEY (tenant, term, n) INCLUDE (statement, about, support, cues, length);
