CREATE TABLE `session` (
          `id` text PRIMARY KEY,
          `project_id` text NOT NULL,
          `workspace_id` text,
          `parent_id` text,
          `slug` text NOT NULL,
          `directory` text NOT NULL,
          `path` text,
          `title` text NOT NULL,
          `version` text NOT NULL,
          `share_url` text,
          `summary_additions` integer,
          `summary_deletions` integer,
          `summary_files` integer,
          `summary_diffs` text,
          `metadata` text,
          `cost` real DEFAULT 0 NOT NULL,
          `tokens_input` integer DEFAULT 0 NOT NULL,
          `tokens_output` integer DEFAULT 0 NOT NULL,
          `tokens_reasoning` integer DEFAULT 0 NOT NULL,
          `tokens_cache_read` integer DEFAULT 0 NOT NULL,
          `tokens_cache_write` integer DEFAULT 0 NOT NULL,
          `revert` text,
          `permission` text,
          `agent` text,
          `model` text,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `time_compacting` integer,
          `time_archived` integer,
          CONSTRAINT `fk_session_project_id_project_id_fk` FOREIGN KEY (`project_id`) REFERENCES `project`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `message` (
          `id` text PRIMARY KEY,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_message_session_id_session_id_fk` FOREIGN KEY (`session_id`) REFERENCES `session`(`id`) ON DELETE CASCADE
        );
CREATE TABLE `part` (
          `id` text PRIMARY KEY,
          `message_id` text NOT NULL,
          `session_id` text NOT NULL,
          `time_created` integer NOT NULL,
          `time_updated` integer NOT NULL,
          `data` text NOT NULL,
          CONSTRAINT `fk_part_message_id_message_id_fk` FOREIGN KEY (`message_id`) REFERENCES `message`(`id`) ON DELETE CASCADE
        );
INSERT INTO session (id,project_id,workspace_id,parent_id,slug,directory,path,title,version,share_url,summary_additions,summary_deletions,summary_files,summary_diffs,metadata,cost,tokens_input,tokens_output,tokens_reasoning,tokens_cache_read,tokens_cache_write,revert,permission,agent,model,time_created,time_updated,time_compacting,time_archived) VALUES ('ses_e154b2929ffe7XKFaQztPsazir','global',NULL,NULL,'stellar-orchid','/home/dev/acme-api','','Done. All in place.','1.18.33',NULL,0,0,0,NULL,NULL,0.0,1,1,0,0,0,NULL,'[{"permission":"question","pattern":"*","action":"deny"},{"permission":"plan_enter","pattern":"*","action":"deny"},{"permission":"plan_exit","pattern":"*","action":"deny"}]','build','{"id":"m","providerID":"fake","variant":"default"}',1794939082454,1794939089607,NULL,NULL);
INSERT INTO message (id,session_id,time_created,time_updated,data) VALUES ('msg_1eab4d818001I4iTsJenPryIg6','ses_e154b2929ffe7XKFaQztPsazir',1794939082777,1794939086581,'{"role":"user","time":{"created":1794939082777},"agent":"build","model":{"providerID":"fake","modelID":"m"},"summary":{"diffs":[]}}');
INSERT INTO message (id,session_id,time_created,time_updated,data) VALUES ('msg_1eab4e23c0016fW6UgeDUekc0F','ses_e154b2929ffe7XKFaQztPsazir',1794939085372,1794939089570,'{"parentID":"msg_1eab4d818001I4iTsJenPryIg6","role":"assistant","mode":"build","agent":"build","path":{"cwd":"/home/dev/acme-api","root":"/home/dev/acme-api"},"cost":0,"tokens":{"total":2,"input":1,"output":1,"reasoning":0,"cache":{"write":0,"read":0}},"modelID":"m","providerID":"fake","time":{"created":1794939085372,"completed":1794939089567},"finish":"stop"}');
INSERT INTO part (id,message_id,session_id,time_created,time_updated,data) VALUES ('prt_1eab4d844001Eo3bCIYt0Et3db','msg_1eab4d818001I4iTsJenPryIg6','ses_e154b2929ffe7XKFaQztPsazir',1794939085213,1794939085224,'{"type":"text","text":"\"List files. We deploy on Thursdays only.\""}');
INSERT INTO part (id,message_id,session_id,time_created,time_updated,data) VALUES ('prt_1eab4f0ff001du55pTaoTSRQQ1','msg_1eab4e23c0016fW6UgeDUekc0F','ses_e154b2929ffe7XKFaQztPsazir',1794939089151,1794939089156,'{"snapshot":"444a8fa98e219b9ee8585973bba9425676aba452","type":"step-start"}');
INSERT INTO part (id,message_id,session_id,time_created,time_updated,data) VALUES ('prt_1eab4f108001nY6sRPnsnkmbtp','msg_1eab4e23c0016fW6UgeDUekc0F','ses_e154b2929ffe7XKFaQztPsazir',1794939089160,1794939089175,'{"type":"text","text":"Done. All in place.","time":{"start":1794939089160,"end":1794939089169}}');
INSERT INTO part (id,message_id,session_id,time_created,time_updated,data) VALUES ('prt_1eab4f1f2001wcfJd9UK02uV9M','msg_1eab4e23c0016fW6UgeDUekc0F','ses_e154b2929ffe7XKFaQztPsazir',1794939089394,1794939089399,'{"reason":"stop","snapshot":"444a8fa98e219b9ee8585973bba9425676aba452","type":"step-finish","tokens":{"total":2,"input":1,"output":1,"reasoning":0,"cache":{"write":0,"read":0}},"cost":0}');
