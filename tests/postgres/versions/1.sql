-- Rows as Engram wrote them to the tables of schema 1: two memories, one of them rated, a session of two events, a purge.
INSERT INTO engram.store_facts (tenant, key, value) VALUES
    ('acme', 'lock', 'null'), ('acme', 'embedder', '"static-minilm-256-v1"'), ('acme', 'dim', '256'), ('acme', 'generation', '1');
INSERT INTO engram.scopes (tenant, scope, change) VALUES ('acme', 'project:acme', 2), ('acme', 'global', 1);
INSERT INTO engram.id_numbers (tenant, day, last) VALUES ('acme', 'ENG-2026-0301', 3);
INSERT INTO engram.agent_memory (tenant, id, record) VALUES
    ('acme', 'ENG-2026-0301-001', '{"id":"ENG-2026-0301-001","version":2,"status":"active","type":"factual","scope":"project:acme","name":"staging","statement":"The staging server is called nightshift","tags":["server"],"activation":{"retrieval_strength":0.75,"storage_strength":0.5,"frequency":0,"last_accessed":"2026-03-01T09:00:00.010000Z","seq":2},"associations":[{"target":"ENG-2026-0301-002","type":"semantic","strength":0.5}],"learned_by":"add","last_verified":"2026-03-01T09:00:00.010000Z","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual","feedback_signals":{"positive":1,"negative":0,"neutral":0}}}'),
    ('acme', 'ENG-2026-0301-002', '{"id":"ENG-2026-0301-002","version":2,"status":"active","type":"convention","scope":"project:acme","name":"deploy-on-tuesdays-only","statement":"Deploy on Tuesdays only","learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.003000Z","source":"manual"}}');
INSERT INTO engram.memory_names (tenant, name, id, scope) VALUES
    ('acme', 'staging', 'ENG-2026-0301-001', 'project:acme'),
    ('acme', 'deploy-on-tuesdays-only', 'ENG-2026-0301-002', 'project:acme');
INSERT INTO engram.memory_relations (tenant, source, target, type, strength, weight, reinforced) VALUES
    ('acme', 'ENG-2026-0301-001', 'ENG-2026-0301-002', 'semantic', 0.5, 1, NULL);
INSERT INTO engram.agent_sessions (tenant, id, task, scopes, started, ended, summary) VALUES
    ('acme', 'S-20260301-090000-243452', 'roll out', '{project:acme,user,global}', '2026-03-01 09:00:00.005Z', '2026-03-01 09:00:00.012Z', '');
INSERT INTO engram.ledger_heads (tenant, session, seq, digest) VALUES
    ('acme', 'S-20260301-090000-243452', 2, '99b90b7c36a94cbe64fbe8658b5239dd0b87ed3243b704a88ed9a3121b57c9af');
INSERT INTO engram.agent_events (tenant, id, session, seq, key, record) VALUES
    ('acme', 'EVT-20260301-c0a57ea5711e', 'S-20260301-090000-243452', 1, '', '{"id":"EVT-20260301-c0a57ea5711e","seq":1,"session":"S-20260301-090000-243452","role":"user","type":"message","at":"2026-03-01T09:00:00.008000Z","content":"ship it please","salt":"6ef34419e8267ae56da8ab87541ab758","body":"4379e4e9565609e6ab8d440b444b2211e2a08c58d0e6e107abbc6b123feb4916","digest":"ea66ef94dbb3aaa3cba2bcb6a37dcc69879f144db5e3451fef88edca48be2597"}'),
    ('acme', 'EVT-20260301-f3f44703d943', 'S-20260301-090000-243452', 2, '', '{"id":"EVT-20260301-f3f44703d943","seq":2,"session":"S-20260301-090000-243452","role":"assistant","type":"message","at":"2026-03-01T09:00:00.009000Z","content":"shipping to nightshift","salt":"1c2891c7b3f49ee45da4a44442d68b54","body":"83af2462065dd48117fa2ef48580e946ea4593f0cee6eff92b913502c938725c","prev":"ea66ef94dbb3aaa3cba2bcb6a37dcc69879f144db5e3451fef88edca48be2597","digest":"99b90b7c36a94cbe64fbe8658b5239dd0b87ed3243b704a88ed9a3121b57c9af"}');
INSERT INTO engram.journal (tenant, seq, at, op, actor, reason, session, ids) VALUES
    ('acme', 1, '2026-03-01 09:00:00.002Z', 'add', 'manual', '', '', '{ENG-2026-0301-001}'),
    ('acme', 2, '2026-03-01 09:00:00.004Z', 'add', 'manual', '', '', '{ENG-2026-0301-002}'),
    ('acme', 3, '2026-03-01 09:00:00.011Z', 'use', 'engram', '', 'S-20260301-090000-243452', '{ENG-2026-0301-001}'),
    ('acme', 4, '2026-03-01 09:00:00.014Z', 'add', 'manual', '', '', '{ENG-2026-0301-003}'),
    ('acme', 5, '2026-03-01 09:00:00.015Z', 'purge', 'manual', '', '', '{ENG-2026-0301-003}');
INSERT INTO engram.journal_images (tenant, id, seq, at, op, after) VALUES
    ('acme', 'ENG-2026-0301-001', 1, '2026-03-01 09:00:00.002Z', 'add', '{"id":"ENG-2026-0301-001","version":2,"status":"active","type":"factual","scope":"project:acme","name":"staging","statement":"The staging server is called nightshift","tags":["server"],"learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual"}}'),
    ('acme', 'ENG-2026-0301-002', 2, '2026-03-01 09:00:00.004Z', 'add', '{"id":"ENG-2026-0301-002","version":2,"status":"active","type":"convention","scope":"project:acme","name":"deploy-on-tuesdays-only","statement":"Deploy on Tuesdays only","learned_by":"add","metadata":{"created":"2026-03-01T09:00:00.003000Z","source":"manual"}}'),
    ('acme', 'ENG-2026-0301-001', 3, '2026-03-01 09:00:00.011Z', 'use', '{"id":"ENG-2026-0301-001","version":2,"status":"active","type":"factual","scope":"project:acme","name":"staging","statement":"The staging server is called nightshift","tags":["server"],"activation":{"retrieval_strength":0.75,"storage_strength":0.5,"frequency":0,"last_accessed":"2026-03-01T09:00:00.010000Z","seq":2},"associations":[{"target":"ENG-2026-0301-002","type":"semantic","strength":0.5}],"learned_by":"add","last_verified":"2026-03-01T09:00:00.010000Z","metadata":{"created":"2026-03-01T09:00:00.001000Z","source":"manual","feedback_signals":{"positive":1,"negative":0,"neutral":0}}}'),
    ('acme', 'ENG-2026-0301-003', 4, '2026-03-01 09:00:00.014Z', 'add', NULL),
    ('acme', 'ENG-2026-0301-003', 5, '2026-03-01 09:00:00.015Z', 'purge', NULL);
INSERT INTO engram.tombstones (tenant, id) VALUES ('acme', 'ENG-2026-0301-003');
INSERT INTO engram.memory_uses (tenant, id, position, kind, signal, session, at) VALUES
    ('acme', 'ENG-2026-0301-001', 1, 'rated', 'positive', 'S-20260301-090000-243452', '2026-03-01 09:00:00.01Z');
INSERT INTO engram.gate_verdicts (tenant, at, gate, outcome) VALUES ('acme', '2026-03-01 09:00:00.01Z', 'quality', 'REJECTED');
SELECT setval('engram.decision_numbers', 5), setval('engram.use_numbers', 1);
