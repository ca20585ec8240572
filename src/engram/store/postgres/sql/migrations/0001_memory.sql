-- Engram's tables. Every key leads with `tenant` and no constraint crosses it, so they can be partitioned by hash and distributed
-- by tenant. Numbers come from sequences: gaps are fine, repeats are not.

CREATE SEQUENCE engram.document_numbers;
CREATE SEQUENCE engram.decision_numbers;
CREATE SEQUENCE engram.use_numbers;

-- Facts about a tenant's store: which embedder made its vectors, whether it is paused.
CREATE TABLE engram.store_facts (
    tenant text COLLATE "C" NOT NULL,
    key    text COLLATE "C" NOT NULL,
    value  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, key)
);

-- One row per scope: whoever decides by what a scope holds locks it, and leaves the number of the change.
CREATE TABLE engram.scopes (
    tenant text COLLATE "C" NOT NULL,
    scope  text COLLATE "C" NOT NULL,
    change bigint NOT NULL,
    PRIMARY KEY (tenant, scope)
);

-- Highest number given out for each day, so that no id comes back.
CREATE TABLE engram.id_numbers (
    tenant text COLLATE "C" NOT NULL,
    day    text COLLATE "C" NOT NULL,
    last   integer NOT NULL,
    PRIMARY KEY (tenant, day)
);

CREATE TABLE engram.agent_memory (
    tenant    text COLLATE "C" NOT NULL,
    id        text COLLATE "C" NOT NULL,
    scope     text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'scope') STORED,
    type      text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'type') STORED,
    status    text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'status') STORED,
    statement text COLLATE "C" NOT NULL GENERATED ALWAYS AS (record ->> 'statement') STORED,
    -- The whole memory in Engram's own wording, as its YAML file would hold it. `json`, not `jsonb`: kept to the letter.
    record    json NOT NULL,
    PRIMARY KEY (tenant, id)
);

CREATE TABLE engram.memory_names (
    tenant text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    scope  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, name, id)
);
CREATE INDEX memory_names_id ON engram.memory_names (tenant, id);

CREATE TABLE engram.memory_relations (
    tenant     text COLLATE "C" NOT NULL,
    source     text COLLATE "C" NOT NULL,
    target     text COLLATE "C" NOT NULL,
    type       text COLLATE "C" NOT NULL,
    strength   double precision NOT NULL,
    weight     double precision NOT NULL,
    reinforced timestamptz,
    PRIMARY KEY (tenant, source, target, type)
);
CREATE INDEX memory_relations_target ON engram.memory_relations (tenant, target, type);

CREATE TABLE engram.agent_sessions (
    tenant  text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    task    text COLLATE "C" NOT NULL,
    scopes  text[]      NOT NULL,
    started timestamptz NOT NULL,
    ended   timestamptz,
    summary text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX agent_sessions_started ON engram.agent_sessions (tenant, started DESC);

-- Where each session's chain of events ends. Its row is the lock under which the chain grows.
CREATE TABLE engram.ledger_heads (
    tenant  text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    digest  text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, session)
);

CREATE TABLE engram.agent_events (
    tenant  text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq     bigint NOT NULL,
    key     text COLLATE "C" NOT NULL,
    record  json   NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE UNIQUE INDEX agent_events_place ON engram.agent_events (tenant, session, seq);
CREATE UNIQUE INDEX agent_events_key ON engram.agent_events (tenant, session, key) WHERE key <> '';

-- Every decision, and what each memory was after it: the audit, the history and the undo.
CREATE TABLE engram.journal (
    tenant  text COLLATE "C" NOT NULL,
    seq     bigint      NOT NULL,
    at      timestamptz NOT NULL,
    op      text COLLATE "C" NOT NULL,
    actor   text COLLATE "C" NOT NULL,
    reason  text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    ids     text[]      NOT NULL,
    PRIMARY KEY (tenant, seq)
);
CREATE TABLE engram.journal_images (
    tenant text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    seq    bigint      NOT NULL,
    at     timestamptz NOT NULL,
    op     text COLLATE "C" NOT NULL,
    after  json,
    PRIMARY KEY (tenant, id, seq)
);
CREATE INDEX journal_images_at ON engram.journal_images (tenant, at);

CREATE TABLE engram.tombstones (
    tenant text COLLATE "C" NOT NULL,
    id     text COLLATE "C" NOT NULL,
    PRIMARY KEY (tenant, id)
);

-- Every use of a memory, appended; folded into the memory at the end of a session.
CREATE TABLE engram.memory_uses (
    tenant   text COLLATE "C" NOT NULL,
    id       text COLLATE "C" NOT NULL,
    position bigint      NOT NULL,
    kind     text COLLATE "C" NOT NULL,
    signal   text COLLATE "C" NOT NULL,
    session  text COLLATE "C" NOT NULL,
    at       timestamptz NOT NULL,
    PRIMARY KEY (tenant, id, position)
);
CREATE INDEX memory_uses_session ON engram.memory_uses (tenant, session, position);
CREATE INDEX memory_uses_kind ON engram.memory_uses (tenant, kind, position DESC);

-- What the gates said of autonomous proposals; never a word of what was proposed.
CREATE TABLE engram.gate_verdicts (
    tenant  text COLLATE "C" NOT NULL,
    at      timestamptz NOT NULL,
    gate    text COLLATE "C" NOT NULL,
    outcome text COLLATE "C" NOT NULL
);
CREATE INDEX gate_verdicts_at ON engram.gate_verdicts (tenant, at);
