-- Whom sessions, tasks, jobs and events belong to, as columns, so that every list is narrowed before it is cut.

ALTER TABLE engram.agent_task_runs
    ADD COLUMN scope text COLLATE "C" GENERATED ALWAYS AS (coalesce(record ->> 'scope', 'global')) STORED;
CREATE INDEX agent_task_runs_scope ON engram.agent_task_runs (tenant, scope, created DESC, id DESC);

ALTER TABLE engram.agent_sessions
    ADD COLUMN scope text COLLATE "C" GENERATED ALWAYS AS (coalesce(scopes[1], 'global')) STORED;
CREATE INDEX agent_sessions_scope ON engram.agent_sessions (tenant, scope, started DESC);

-- A job that does not say whose it is belongs to the scope it writes to.
ALTER TABLE engram.memory_jobs
    ADD COLUMN scope text COLLATE "C"
    GENERATED ALWAYS AS (coalesce(record ->> 'scope', record -> 'payload' ->> 'scope', 'global')) STORED;

-- The rows of every tenant are meant here, and row security would hide them from their own table's owner.
ALTER TABLE engram.memory_jobs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE engram.agent_task_runs NO FORCE ROW LEVEL SECURITY;
ALTER TABLE engram.documents NO FORCE ROW LEVEL SECURITY;

-- A job about a task's turns says only which task.
UPDATE engram.memory_jobs j SET record = (j.record::jsonb || jsonb_build_object('scope', t.scope))::json
FROM engram.agent_task_runs t
WHERE t.tenant = j.tenant AND t.id = j.record -> 'payload' ->> 'task' AND j.record ->> 'scope' IS NULL
    AND j.record -> 'payload' ->> 'scope' IS NULL;

-- What was said without a session lies in a ledger named after its owner's scope, and was everyone's to read.
UPDATE engram.documents d SET scope = substr(d.parent, length('conversation:') + 1)
WHERE d.kind = 'event' AND d.scope = 'global' AND starts_with(d.parent, 'conversation:')
    AND d.parent ~ '^conversation:([a-z][a-z0-9_-]{0,31}:[^/\\[:cntrl:]]|user$|local$|public$)';

ALTER TABLE engram.memory_jobs FORCE ROW LEVEL SECURITY;
ALTER TABLE engram.agent_task_runs FORCE ROW LEVEL SECURITY;
ALTER TABLE engram.documents FORCE ROW LEVEL SECURITY;
