-- Versions of a fact, runs of a task with their checkpoints, and the work that is derived from their ledgers.

-- Columns, not indexed expressions: under row security an index answers only what may be computed before a row's tenant is
-- checked, and reading a field of a record is not that.
ALTER TABLE engram.agent_memory
    ADD COLUMN lineage       text COLLATE "C" GENERATED ALWAYS AS (record ->> 'lineage') STORED,
    ADD COLUMN conflict_key  text COLLATE "C" GENERATED ALWAYS AS (record ->> 'conflict_key') STORED,
    ADD COLUMN critical_slot text COLLATE "C" GENERATED ALWAYS AS (record ->> 'critical_slot') STORED;
CREATE INDEX agent_memory_lineage ON engram.agent_memory (tenant, lineage) WHERE lineage <> '';
CREATE INDEX agent_memory_conflict ON engram.agent_memory (tenant, conflict_key, scope) WHERE conflict_key <> '';
CREATE INDEX agent_memory_critical ON engram.agent_memory (tenant, id) WHERE critical_slot <> '';

-- How far a session's rolling summary has come, and who made it.
ALTER TABLE engram.agent_sessions
    ADD COLUMN summary_through bigint NOT NULL DEFAULT 0,
    ADD COLUMN summary_style   text COLLATE "C" NOT NULL DEFAULT '',
    ADD COLUMN summary_by      text COLLATE "C" NOT NULL DEFAULT '';

CREATE TABLE engram.agent_task_runs (
    tenant  text COLLATE "C" NOT NULL,
    id      text COLLATE "C" NOT NULL,
    status  text COLLATE "C" NOT NULL,
    created timestamptz NOT NULL,
    -- The whole run, as its line in `tasks/` would hold it.
    record  json NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX agent_task_runs_created ON engram.agent_task_runs (tenant, created DESC, id DESC);
CREATE INDEX agent_task_runs_status ON engram.agent_task_runs (tenant, status, created DESC, id DESC);

CREATE TABLE engram.agent_checkpoints (
    tenant text COLLATE "C" NOT NULL,
    task   text COLLATE "C" NOT NULL,
    number integer NOT NULL,
    record json NOT NULL,
    PRIMARY KEY (tenant, task, number)
);

-- Work to be done once the writer has gone on; leased to one worker at a time.
CREATE TABLE engram.memory_jobs (
    tenant       text COLLATE "C" NOT NULL,
    id           text COLLATE "C" NOT NULL,
    kind         text COLLATE "C" NOT NULL,
    status       text COLLATE "C" NOT NULL,
    run_after    timestamptz NOT NULL,
    leased_until timestamptz,
    record       json NOT NULL,
    PRIMARY KEY (tenant, id)
);
CREATE INDEX memory_jobs_due ON engram.memory_jobs (tenant, run_after, id) WHERE status IN ('waiting', 'leased');

-- Tokens a language model has cost, by day.
CREATE TABLE engram.model_spend (
    tenant text COLLATE "C" NOT NULL,
    day    date   NOT NULL,
    tokens bigint NOT NULL,
    PRIMARY KEY (tenant, day)
);

DO $$
DECLARE
    held text;
BEGIN
    FOREACH held IN ARRAY ARRAY['agent_task_runs', 'agent_checkpoints', 'memory_jobs', 'model_spend']
    LOOP
        EXECUTE format('ALTER TABLE engram.%I ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE engram.%I FORCE ROW LEVEL SECURITY', held);
        EXECUTE format(
            'CREATE POLICY own_tenant ON engram.%I USING (tenant = current_setting(''engram.tenant'', true)) '
            'WITH CHECK (tenant = current_setting(''engram.tenant'', true))', held);
    END LOOP;
END $$;
