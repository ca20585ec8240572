-- The one index over memories and events: documents, their words, their vectors. All of it can be made anew from the records.

CREATE TABLE engram.documents (
    tenant      text COLLATE "C" NOT NULL,
    n           bigint  NOT NULL,
    id          text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    scope       text COLLATE "C" NOT NULL,
    status      text COLLATE "C" NOT NULL,
    type        text COLLATE "C" NOT NULL,
    domain      text COLLATE "C" NOT NULL,
    parent      text COLLATE "C" NOT NULL,
    position    bigint  NOT NULL,
    time        timestamptz,
    known       timestamptz,
    valid_from  timestamptz,
    valid_until timestamptz,
    pinned      boolean NOT NULL,
    hash        text COLLATE "C" NOT NULL,
    change      bigint  NOT NULL,
    tags        text[]  NOT NULL,
    -- Index terms by field, joined by blanks, and how many there are.
    statement   text COLLATE "C" NOT NULL,
    about       text COLLATE "C" NOT NULL,
    support     text COLLATE "C" NOT NULL,
    length      integer NOT NULL,
    -- A digest of the embedded text: while it stands, so does the vector.
    meaning     bytea   NOT NULL,
    PRIMARY KEY (tenant, n)
);
CREATE UNIQUE INDEX documents_id ON engram.documents (tenant, id);
CREATE INDEX documents_hash ON engram.documents (tenant, hash, scope) WHERE hash <> '';
CREATE INDEX documents_scope ON engram.documents (tenant, kind, scope, status);
CREATE INDEX documents_time ON engram.documents (tenant, kind, time DESC NULLS LAST, n DESC);
CREATE INDEX documents_parent ON engram.documents (tenant, parent, position) WHERE parent <> '';
CREATE INDEX documents_change ON engram.documents (tenant, scope, change) WHERE kind = 'memory';
CREATE INDEX documents_pinned ON engram.documents (tenant, n) WHERE pinned;

-- Which documents hold a term, and how often in each field. Its key answers a query without a look at the table.
CREATE TABLE engram.postings (
    tenant    text COLLATE "C" NOT NULL,
    term      text COLLATE "C" NOT NULL,
    n         bigint   NOT NULL,
    statement smallint NOT NULL,
    about     smallint NOT NULL,
    support   smallint NOT NULL,
    length    integer  NOT NULL,
    PRIMARY KEY (tenant, term, n) INCLUDE (statement, about, support, length)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);

-- In how many documents each term occurs, counted up to the document `counted_to`: statistics, never far behind.
CREATE TABLE engram.terms (
    tenant    text COLLATE "C" NOT NULL,
    term      text COLLATE "C" NOT NULL,
    documents integer NOT NULL,
    PRIMARY KEY (tenant, term)
) WITH (fillfactor = 80);
CREATE TABLE engram.term_statistics (
    tenant     text COLLATE "C" NOT NULL,
    counted_to bigint NOT NULL,
    documents  bigint NOT NULL,
    length     bigint NOT NULL,
    PRIMARY KEY (tenant)
);

-- Vectors of one generation come from one embedder; generations never mix. Kind and scope stand here too, so that an exact
-- search reads only what may answer, all of it from one index.
CREATE TABLE engram.memory_vectors (
    tenant     text COLLATE "C" NOT NULL,
    generation integer NOT NULL,
    n          bigint  NOT NULL,
    kind       text COLLATE "C" NOT NULL,
    scope      text COLLATE "C" NOT NULL,
    vector     halfvec NOT NULL,
    PRIMARY KEY (tenant, generation, n)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05);
-- An index row holds some 2,700 bytes: vectors of up to 1,200 dimensions fit; longer ones are read from the table.
CREATE INDEX memory_vectors_near ON engram.memory_vectors (tenant, generation, kind, scope, n) INCLUDE (vector)
    WHERE vector_dims(vector) <= 1200;
CREATE INDEX memory_vectors_long ON engram.memory_vectors (tenant, generation, kind, scope, n)
    WHERE vector_dims(vector) > 1200;
