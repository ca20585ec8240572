-- Small states by name: what a later run of some work has to know, such as how far it has read. Ids, paths, numbers and times,
-- never what anyone said.
CREATE TABLE engram.named_states (
    tenant text COLLATE "C" NOT NULL,
    name   text COLLATE "C" NOT NULL,
    value  json NOT NULL,
    PRIMARY KEY (tenant, name)
) WITH (fillfactor = 70);
ALTER TABLE engram.named_states ENABLE ROW LEVEL SECURITY;
ALTER TABLE engram.named_states FORCE ROW LEVEL SECURITY;
CREATE POLICY own_tenant ON engram.named_states USING (tenant = current_setting('engram.tenant', true))
    WITH CHECK (tenant = current_setting('engram.tenant', true));
