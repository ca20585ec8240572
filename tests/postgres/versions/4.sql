-- What Engram wrote to a store of schema 4: a fact and what superseded it, a task with its ledger, a checkpoint and a job, a
-- session with a rolling summary, and in the journal where both ledgers end. The vectors are stand-ins of the right length.
INSERT INTO engram.agent_memory (tenant, id, record) VALUES
    ('acme', 'ENG-2026-0301-004', '{"id":"ENG-2026-0301-004","version":2,"status":"superseded","type":"decision","scope":"project:acme","name":"release-train","statement":"The release train leaves on Mondays","valid_until":"2026-03-01T09:00:00.001000Z","lineage":"LIN-release-day","superseded_by":"ENG-2026-0301-005","conflict_key":"release-day","learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual"}}'),
    ('acme', 'ENG-2026-0301-005', '{"id":"ENG-2026-0301-005","version":2,"status":"active","type":"decision","scope":"project:acme","name":"release-train-2","statement":"The release train leaves on Thursdays","valid_from":"2026-03-01T09:00:00.001000Z","lineage":"LIN-release-day","revision":2,"supersedes":["ENG-2026-0301-004"],"conflict_key":"release-day","critical_slot":"release","learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual"}}');
INSERT INTO engram.memory_names (tenant, name, id, scope) VALUES
    ('acme', 'release-train', 'ENG-2026-0301-004', 'project:acme'),
    ('acme', 'release-train-2', 'ENG-2026-0301-005', 'project:acme');
INSERT INTO engram.agent_sessions (tenant, id, task, scopes, started, ended, summary, summary_through, summary_style, summary_by) VALUES
    ('acme', 'S-20260301-090100-5f1d20', '', '{project:acme}', '2026-03-01 09:00:00.001Z', NULL, 'The user asks for the day of the train.', 1, 'session_compact', 'rules');
INSERT INTO engram.ledger_heads (tenant, session, seq, digest) VALUES
    ('acme', 'S-20260301-090100-5f1d20', 1, 'fd3d816b74e75d930fbd3dedbe6a1a2541911ac1b3f2e52f05c5e58a67a10852'),
    ('acme', 'TASK-20260301-090000-cad633', 1, 'db80d357d355baeeec1ce832135de61da250ac4cbb03edae3a05dbb4cc70c7d9');
INSERT INTO engram.agent_events (tenant, id, session, seq, key, record) VALUES
    ('acme', 'EVT-20260301-34613ea3c614', 'S-20260301-090100-5f1d20', 1, '', '{"id":"EVT-20260301-34613ea3c614","seq":1,"session":"S-20260301-090100-5f1d20","role":"user","type":"message","at":"2026-03-01T09:00:00.009000Z","content":"which day is the train","salt":"a9d16fadb17528ea790c7ee38de303d7","body":"13ed11b1d92ef53b26bf3e12dcb1526f082153351258b686d76ad1f53e4698cc","digest":"fd3d816b74e75d930fbd3dedbe6a1a2541911ac1b3f2e52f05c5e58a67a10852"}'),
    ('acme', 'EVT-20260301-41c054eada99', 'TASK-20260301-090000-cad633', 1, 'k1', '{"id":"EVT-20260301-41c054eada99","seq":1,"session":"TASK-20260301-090000-cad633","role":"user","type":"message","at":"2026-03-01T09:00:00.004000Z","content":"move it to Thursdays","key":"k1","salt":"4a3203bebded50a8cd2dc0eec44ebf04","body":"925d9b639eabc3f3c10326bdd16614666bddd47d604701f4733c7f902629c236","digest":"db80d357d355baeeec1ce832135de61da250ac4cbb03edae3a05dbb4cc70c7d9"}');
INSERT INTO engram.journal (tenant, seq, at, op, actor, reason, session, ids) VALUES
    ('acme', 6, '2026-03-01 09:00:00.002Z', 'add', 'manual', '', '', '{ENG-2026-0301-004,ENG-2026-0301-005}'),
    ('acme', 7, '2026-03-01 09:00:00.007Z', 'ledger', 'engram', '1 db80d357d355baeeec1ce832135de61da250ac4cbb03edae3a05dbb4cc70c7d9', 'TASK-20260301-090000-cad633', '{}'),
    ('acme', 8, '2026-03-01 09:00:00.01Z', 'ledger', 'engram', '1 fd3d816b74e75d930fbd3dedbe6a1a2541911ac1b3f2e52f05c5e58a67a10852', 'S-20260301-090100-5f1d20', '{}');
INSERT INTO engram.journal_images (tenant, id, seq, at, op, after) VALUES
    ('acme', 'ENG-2026-0301-004', 6, '2026-03-01 09:00:00.002Z', 'add', '{"id":"ENG-2026-0301-004","version":2,"status":"superseded","type":"decision","scope":"project:acme","name":"release-train","statement":"The release train leaves on Mondays","valid_until":"2026-03-01T09:00:00.001000Z","lineage":"LIN-release-day","superseded_by":"ENG-2026-0301-005","conflict_key":"release-day","learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual"}}'),
    ('acme', 'ENG-2026-0301-005', 6, '2026-03-01 09:00:00.002Z', 'add', '{"id":"ENG-2026-0301-005","version":2,"status":"active","type":"decision","scope":"project:acme","name":"release-train-2","statement":"The release train leaves on Thursdays","valid_from":"2026-03-01T09:00:00.001000Z","lineage":"LIN-release-day","revision":2,"supersedes":["ENG-2026-0301-004"],"conflict_key":"release-day","critical_slot":"release","learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual"}}');
INSERT INTO engram.documents (tenant, n, id, kind, scope, status, type, domain, parent, position, time, known, valid_from, valid_until, pinned, hash, change, tags, statement, about, support, length, meaning) VALUES
    ('acme', 5, 'ENG-2026-0301-004', 'memory', 'project:acme', 'superseded', 'decision', '', '', 0, '2026-03-01 09:00:00.001Z', '2026-03-01 09:00:00.001Z', NULL, '2026-03-01 09:00:00.001Z', false, '1e75b939f904e5ea63da96a2e7d3f1bcf42233bbedf9dc2c0f220cdfb04ef852', 3, '{}', 'the releas train leaf on monday', 'monday', '2026_03_01 2026_03 2026 03 01', 12, '\xc7a7fd17fc10a3e3'),
    ('acme', 6, 'ENG-2026-0301-005', 'memory', 'project:acme', 'active', 'decision', '', '', 0, '2026-03-01 09:00:00.001Z', '2026-03-01 09:00:00.001Z', '2026-03-01 09:00:00.001Z', NULL, false, 'eadac4fbc8db4aab98d345770d0d77c933bd4ef763b5df61818299cd381a489c', 3, '{}', 'the releas train leaf on thursday', 'thursday', '2026_03_01 2026_03 2026 03 01', 12, '\x6f2a4e127b082b21'),
    ('acme', 7, 'EVT-20260301-41c054eada99', 'event', 'project:acme', 'active', 'message', '', 'TASK-20260301-090000-cad633', 1, '2026-03-01 09:00:00.004Z', '2026-03-01 09:00:00.004Z', NULL, NULL, false, '', 0, '{}', 'move it to thursday', 'user', '', 5, '\x4d32f688fb090f0b'),
    ('acme', 8, 'EVT-20260301-34613ea3c614', 'event', 'project:acme', 'active', 'message', '', 'S-20260301-090100-5f1d20', 1, '2026-03-01 09:00:00.009Z', '2026-03-01 09:00:00.009Z', NULL, NULL, false, '', 0, '{}', 'which day is the train', 'user', '', 6, '\x03686c8079a70a3e');
INSERT INTO engram.agent_task_runs (tenant, id, status, created, record) VALUES
    ('acme', 'TASK-20260301-090000-cad633', 'running', '2026-03-01 09:00:00.003Z', '{"id":"TASK-20260301-090000-cad633","goal":"Move the release train","scope":"project:acme","created":"2026-03-01T09:00:00.003000Z","updated":"2026-03-01T09:00:00.003000Z","status":"running"}');
INSERT INTO engram.agent_checkpoints (tenant, task, number, record) VALUES
    ('acme', 'TASK-20260301-090000-cad633', 1, '{"id":"CKP-20260301-090000-cad633-001","task":"TASK-20260301-090000-cad633","number":1,"created":"2026-03-01T09:00:00.008000Z","summary":"The train is moved","pending_steps":["tell the team"],"through":1,"kind":"progress"}');
INSERT INTO engram.memory_jobs (tenant, id, kind, status, run_after, leased_until, record) VALUES
    ('acme', 'derive:EVT-20260301-41c054eada99', 'derive', 'waiting', '2026-03-01 09:00:00.006Z', NULL, '{"id":"derive:EVT-20260301-41c054eada99","kind":"derive","created":"2026-03-01T09:00:00.005000Z","run_after":"2026-03-01T09:00:00.006000Z","payload":{"ledger":"TASK-20260301-090000-cad633","events":["EVT-20260301-41c054eada99"]},"status":"waiting","attempts":0}');
INSERT INTO engram.postings (tenant, term, n, statement, about, support, length)
SELECT d.tenant, w.term, d.n, count(*) FILTER (WHERE w.field = 1), count(*) FILTER (WHERE w.field = 2),
    count(*) FILTER (WHERE w.field = 3), d.length
FROM engram.documents d CROSS JOIN LATERAL (
    SELECT term, 1 AS field FROM string_to_table(d.statement, ' ') AS term
    UNION ALL SELECT term, 2 FROM string_to_table(d.about, ' ') AS term
    UNION ALL SELECT term, 3 FROM string_to_table(d.support, ' ') AS term
) w WHERE d.n > 4 AND w.term <> '' GROUP BY d.tenant, w.term, d.n, d.length;
INSERT INTO engram.terms AS known (tenant, term, documents)
SELECT tenant, term, count(*) FROM engram.postings WHERE n > 4 GROUP BY tenant, term
ON CONFLICT (tenant, term) DO UPDATE SET documents = known.documents + excluded.documents;
UPDATE engram.term_statistics SET counted_to = 8, documents = 8, length = 55;
INSERT INTO engram.memory_vectors (tenant, generation, n, kind, scope, vector)
SELECT tenant, 1, n, kind, scope, ('[' || repeat('0,', n::integer) || '1' || repeat(',0', 255 - n::integer) || ']')::halfvec
FROM engram.documents WHERE n > 4;
UPDATE engram.scopes SET change = 3 WHERE scope = 'project:acme';
UPDATE engram.id_numbers SET last = 5;
SELECT setval('engram.document_numbers', 8), setval('engram.decision_numbers', 8);
