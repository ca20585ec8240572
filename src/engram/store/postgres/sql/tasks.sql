-- name: put_task
INSERT INTO engram.agent_task_runs (tenant, id, status, created, record)
VALUES (%(tenant)s, %(id)s, %(status)s, %(created)s, %(record)s::json)
ON CONFLICT (tenant, id) DO UPDATE SET status = excluded.status, record = excluded.record

-- name: task
SELECT record::text FROM engram.agent_task_runs WHERE tenant = %(tenant)s AND id = %(id)s

-- name: lock_task
SELECT record::text FROM engram.agent_task_runs WHERE tenant = %(tenant)s AND id = %(id)s FOR UPDATE

-- name: share_task
-- A writer to a task's ledger keeps the task from ending meanwhile, without blocking other writers.
SELECT record::text FROM engram.agent_task_runs WHERE tenant = %(tenant)s AND id = %(id)s FOR SHARE

-- name: tasks
SELECT record::text FROM engram.agent_task_runs WHERE tenant = %(tenant)s AND (%(any)s OR scope = ANY(%(scopes)b::text[]))
ORDER BY created DESC, id DESC LIMIT %(limit)s

-- name: tasks_in
SELECT record::text FROM engram.agent_task_runs
WHERE tenant = %(tenant)s AND status = ANY(%(statuses)b::text[]) AND (%(any)s OR scope = ANY(%(scopes)b::text[]))
ORDER BY created DESC, id DESC LIMIT %(limit)s

-- name: last_checkpoint
SELECT coalesce(max(number), 0) FROM engram.agent_checkpoints WHERE tenant = %(tenant)s AND task = %(task)s

-- name: put_checkpoint
INSERT INTO engram.agent_checkpoints (tenant, task, number, record)
VALUES (%(tenant)s, %(task)s, %(number)s, %(record)s::json)
ON CONFLICT (tenant, task, number) DO UPDATE SET record = excluded.record

-- name: checkpoints
SELECT record::text FROM engram.agent_checkpoints WHERE tenant = %(tenant)s AND task = %(task)s
ORDER BY number DESC LIMIT %(limit)s

-- name: all_checkpoints
SELECT record::text FROM engram.agent_checkpoints WHERE tenant = %(tenant)s ORDER BY task, number

-- name: put_jobs
INSERT INTO engram.memory_jobs (tenant, id, kind, status, run_after, leased_until, record)
SELECT %(tenant)s, id, kind, status, run_after, leased_until, record::json
FROM unnest(%(ids)b::text[], %(kinds)b::text[], %(statuses)b::text[], %(run_afters)b::timestamptz[],
    %(leases)b::timestamptz[], %(records)b::text[]) AS given(id, kind, status, run_after, leased_until, record)
ON CONFLICT (tenant, id) DO NOTHING

-- name: due_jobs
-- Skips jobs that another worker is leasing at this moment.
SELECT record::text FROM engram.memory_jobs
WHERE tenant = %(tenant)s AND status IN ('waiting', 'leased') AND (run_after <= %(now)s
        OR (run_after > %(ahead)s AND (record ->> 'created')::timestamptz > %(now)s))
    AND (status = 'waiting' OR leased_until <= %(now)s OR leased_until > %(ahead)s) AND (%(any)s OR kind = ANY(%(kinds)b::text[]))
ORDER BY run_after, id LIMIT %(limit)s FOR UPDATE SKIP LOCKED

-- name: see_all_tenants
-- Until the transaction ends, rows of memory_jobs of every tenant can be read.
SET LOCAL engram.worker = 'on'

-- name: due_tenants
-- The one statement that looks across tenants, for a worker of all of them: names only, no record, no lock; on Citus it goes to
-- every shard. One name for each job, so that a few rows are read and no more: the caller continues after the last name.
SELECT tenant FROM engram.memory_jobs
WHERE tenant > %(after)s AND status IN ('waiting', 'leased') AND (run_after <= %(now)s
        OR (run_after > %(ahead)s AND (record ->> 'created')::timestamptz > %(now)s))
    AND (status = 'waiting' OR leased_until <= %(now)s OR leased_until > %(ahead)s) AND kind = ANY(%(kinds)b::text[])
ORDER BY tenant, run_after LIMIT %(limit)s

-- name: lock_job
SELECT record::text FROM engram.memory_jobs WHERE tenant = %(tenant)s AND id = %(id)s FOR UPDATE

-- name: change_job
UPDATE engram.memory_jobs SET status = %(status)s, run_after = %(run_after)s, leased_until = %(leased_until)s,
    record = %(record)s::json
WHERE tenant = %(tenant)s AND id = %(id)s

-- name: drop_job
DELETE FROM engram.memory_jobs WHERE tenant = %(tenant)s AND id = %(id)s

-- name: jobs
SELECT record::text FROM engram.memory_jobs WHERE tenant = %(tenant)s AND (%(any)s OR status = ANY(%(statuses)b::text[]))
    AND (%(everyone)s OR scope = ANY(%(scopes)b::text[]))
ORDER BY (record ->> 'created')::timestamptz, id LIMIT %(limit)s

-- name: quoting_tasks
SELECT kind, id, number, scope, record::text FROM (
    SELECT 'task' AS kind, id, 0 AS number, coalesce(record ->> 'scope', '') AS scope, record FROM engram.agent_task_runs WHERE tenant = %(tenant)s
    UNION ALL SELECT 'checkpoint', c.task, c.number, coalesce(t.record ->> 'scope', ''), c.record FROM engram.agent_checkpoints c
        LEFT JOIN engram.agent_task_runs t ON t.tenant = %(tenant)s AND t.id = c.task WHERE c.tenant = %(tenant)s
    UNION ALL SELECT 'job', id, 0, coalesce(record ->> 'scope', ''), record FROM engram.memory_jobs WHERE tenant = %(tenant)s
) held
WHERE EXISTS (SELECT FROM unnest(%(needles)b::text[]) needle WHERE strpos(held.record::text, needle) > 0)

-- name: blank_task
UPDATE engram.agent_task_runs SET record = %(record)s::json WHERE tenant = %(tenant)s AND id = %(id)s

-- name: blank_checkpoint
UPDATE engram.agent_checkpoints SET record = %(record)s::json
WHERE tenant = %(tenant)s AND task = %(id)s AND number = %(number)s

-- name: blank_job
UPDATE engram.memory_jobs SET record = %(record)s::json WHERE tenant = %(tenant)s AND id = %(id)s

-- name: drop_jobs
DELETE FROM engram.memory_jobs WHERE tenant = %(tenant)s

-- name: tokens_spent
SELECT tokens FROM engram.model_spend WHERE tenant = %(tenant)s AND day = %(day)s

-- name: spend_tokens
INSERT INTO engram.model_spend AS known (tenant, day, tokens) VALUES (%(tenant)s, %(day)s, %(tokens)s)
ON CONFLICT (tenant, day) DO UPDATE SET tokens = known.tokens + excluded.tokens
