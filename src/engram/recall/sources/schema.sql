-- The index of sources: derived from files that belong to others, one per user. Its folder is named by its version, so this file
-- never migrates: a change here is a new folder, filled again.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value ANY
) WITHOUT ROWID;

-- One row per file or session. `loaded` is 0 for a session of which only the folder it ran in is known.
CREATE TABLE sources (
    source    INTEGER PRIMARY KEY AUTOINCREMENT,
    name      TEXT NOT NULL UNIQUE,
    kind      TEXT NOT NULL,
    path      TEXT NOT NULL,
    title     TEXT NOT NULL,
    stamp     TEXT NOT NULL,
    directory TEXT NOT NULL,
    loaded    INTEGER NOT NULL,
    checked   REAL NOT NULL
);
CREATE INDEX sources_checked ON sources (checked);

CREATE TABLE docs (
    n        INTEGER PRIMARY KEY AUTOINCREMENT,
    source   INTEGER NOT NULL,
    position INTEGER NOT NULL,
    section  TEXT NOT NULL,
    text     TEXT NOT NULL,
    time     REAL,
    vector   BLOB
);
CREATE INDEX docs_source ON docs (source, position);

-- Index terms, joined by blanks, as in the index of memories.
CREATE TABLE texts (
    n         INTEGER PRIMARY KEY,
    statement TEXT NOT NULL,
    about     TEXT NOT NULL,
    support   TEXT NOT NULL
);
CREATE VIRTUAL TABLE words USING fts5 (
    statement, about, support,
    content = 'texts', content_rowid = 'n', columnsize = 1,
    tokenize = 'ascii tokenchars ''_'''
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, 'row');
