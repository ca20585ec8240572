-- What became of a commit whose answer was lost, work found across tenants, and tables that may move between servers.

-- The last transaction each writer has committed: `writer` is one connection of a client, `token` is new for each transaction.
-- Whoever asks writes to the row, too, and so waits for a commit that is still under way.
CREATE TABLE engram.commits (
    tenant text COLLATE "C" NOT NULL,
    writer text COLLATE "C" NOT NULL,
    token  text COLLATE "C" NOT NULL,
    at     timestamptz NOT NULL,
    PRIMARY KEY (tenant, writer)
) WITH (fillfactor = 50);
ALTER TABLE engram.commits ENABLE ROW LEVEL SECURITY;
ALTER TABLE engram.commits FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON engram.commits USING (tenant = current_setting('engram.tenant', true))
    WITH CHECK (tenant = current_setting('engram.tenant', true));

-- A worker of all tenants asks who has work to be done, and then works as that tenant. As plainly `= 'on'`, which the planner
-- takes for rare, it would expect a tenant's own jobs to be few, and sort all of them for the next one.
CREATE POLICY at_work ON engram.memory_jobs FOR SELECT
    USING (nullif(current_setting('engram.worker', true) = 'on', false) IS NOT NULL);

-- It has no key by which a copy of it could follow changes.
ALTER TABLE engram.gate_verdicts REPLICA IDENTITY FULL;
