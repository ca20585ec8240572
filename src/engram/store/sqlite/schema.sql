-- The whole index is derived from files, journal, usage and ledger. Its folder is named by its schema version,
-- so this file never migrates: a change here is a new folder, filled by a rebuild.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY
) WITHOUT ROWID;

-- One row per document. `n` is also the document's row in the vector matrix, so it is never used twice.
CREATE TABLE docs (
    n           INTEGER PRIMARY KEY AUTOINCREMENT,
    id          TEXT NOT NULL UNIQUE,
    kind        TEXT NOT NULL,
    scope       TEXT NOT NULL,
    status      TEXT NOT NULL,
    type        TEXT NOT NULL,
    domain      TEXT NOT NULL,
    parent      TEXT NOT NULL,
    position    INTEGER NOT NULL,
    time        REAL,
    known       REAL,
    valid_from  REAL,
    valid_until REAL,
    pinned      INTEGER NOT NULL,
    hash        TEXT NOT NULL,
    change      INTEGER NOT NULL,
    lineage     TEXT NOT NULL,
    conflict    TEXT NOT NULL,
    critical    TEXT NOT NULL,
    role        TEXT NOT NULL
);
CREATE INDEX docs_hash ON docs (hash, scope) WHERE hash <> '';
CREATE INDEX docs_scope ON docs (kind, scope, status);
CREATE INDEX docs_parent ON docs (parent, position) WHERE parent <> '';
CREATE INDEX docs_change ON docs (change);
CREATE INDEX docs_time ON docs (kind, time);
CREATE INDEX docs_status ON docs (kind, status);
CREATE INDEX docs_pinned ON docs (n) WHERE pinned;
CREATE INDEX docs_lineage ON docs (lineage) WHERE lineage <> '';
CREATE INDEX docs_conflict ON docs (conflict, scope) WHERE conflict <> '';
CREATE INDEX docs_critical ON docs (n) WHERE critical <> '';

CREATE TABLE records (
    n      INTEGER PRIMARY KEY,
    record TEXT NOT NULL
);

-- Index terms, joined by blanks. FTS5 reads them from here, and so does the ranking of a turn with its neighbours.
-- `meaning` is a digest of the embedded text: the vector is valid while it is unchanged.
CREATE TABLE texts (
    n         INTEGER PRIMARY KEY,
    statement TEXT NOT NULL,
    about     TEXT NOT NULL,
    support   TEXT NOT NULL,
    cues      TEXT NOT NULL,
    meaning   BLOB NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (
    statement, about, support, cues,
    content = 'texts', content_rowid = 'n', columnsize = 1,
    tokenize = 'ascii tokenchars ''_'''
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');

CREATE TABLE tags (
    tag TEXT NOT NULL,
    n   INTEGER NOT NULL,
    PRIMARY KEY (tag, n)
) WITHOUT ROWID;
CREATE INDEX tags_n ON tags (n);

CREATE TABLE names (
    name  TEXT NOT NULL,
    id    TEXT NOT NULL,
    scope TEXT NOT NULL,
    PRIMARY KEY (name, id)
) WITHOUT ROWID;
CREATE INDEX names_id ON names (id);

CREATE TABLE links (
    source TEXT NOT NULL,
    target TEXT NOT NULL,
    type   TEXT NOT NULL,
    strength REAL NOT NULL,
    weight REAL NOT NULL,
    reinforced REAL,
    PRIMARY KEY (source, target, type)
) WITHOUT ROWID;
CREATE INDEX links_target ON links (target, weight);

CREATE TABLE anchors (
    path TEXT NOT NULL,
    id   TEXT NOT NULL,
    PRIMARY KEY (path, id)
) WITHOUT ROWID;
CREATE INDEX anchors_id ON anchors (id);

-- Vectors of one generation come from one embedder; generations never mix.
CREATE TABLE vectors (
    generation INTEGER NOT NULL,
    n          INTEGER NOT NULL,
    vector     BLOB NOT NULL,
    PRIMARY KEY (generation, n)
) WITHOUT ROWID;

-- File sync: which file contains which memory, and each file's stamp when it was last read.
CREATE TABLE files (
    path     TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL,
    size     INTEGER NOT NULL,
    inode    INTEGER NOT NULL,
    ctime_ns INTEGER NOT NULL,
    error    TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE places (
    id   TEXT PRIMARY KEY,
    path TEXT NOT NULL
) WITHOUT ROWID;
CREATE INDEX places_path ON places (path);
CREATE TABLE folders (
    path     TEXT PRIMARY KEY,
    mtime_ns INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE ledgers (
    name TEXT PRIMARY KEY,
    size INTEGER NOT NULL
) WITHOUT ROWID;

-- The last anchor of each ledger, as written in the journal.
CREATE TABLE ends (
    session TEXT PRIMARY KEY,
    reason  TEXT NOT NULL
) WITHOUT ROWID;

-- The position of each image of a memory in the journal.
CREATE TABLE images (
    id     TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    at     REAL NOT NULL,
    op     TEXT NOT NULL,
    month  TEXT NOT NULL,
    offset INTEGER NOT NULL,
    PRIMARY KEY (id, seq)
) WITHOUT ROWID;
CREATE INDEX images_at ON images (at);

-- Highest number used on each day, including purged ids, so that no id is used again.
CREATE TABLE numbers (
    day  TEXT PRIMARY KEY,
    last INTEGER NOT NULL
) WITHOUT ROWID;
CREATE TABLE tombstones (
    id TEXT PRIMARY KEY
) WITHOUT ROWID;

CREATE TABLE uses (
    position INTEGER NOT NULL,
    id       TEXT NOT NULL,
    kind     TEXT NOT NULL,
    signal   TEXT NOT NULL,
    session  TEXT NOT NULL,
    at       REAL NOT NULL,
    PRIMARY KEY (id, position)
) WITHOUT ROWID;
CREATE INDEX uses_session ON uses (session, kind);

CREATE TABLE keys (
    session TEXT NOT NULL,
    key     TEXT NOT NULL,
    id      TEXT NOT NULL,
    PRIMARY KEY (session, key)
) WITHOUT ROWID;
