-- No statement sees a row of another tenant, whatever it asks for: the transaction says whose it is.

DO $$
DECLARE
    held text;
BEGIN
    FOR held IN
        SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relnamespace = 'engram'::regnamespace AND c.relkind IN ('r', 'p') AND a.attname = 'tenant'
    LOOP
        EXECUTE format('ALTER TABLE engram.%I ENABLE ROW LEVEL SECURITY', held);
        EXECUTE format('ALTER TABLE engram.%I FORCE ROW LEVEL SECURITY', held);
        EXECUTE format(
            'CREATE POLICY own_tenant ON engram.%I USING (tenant = current_setting(''engram.tenant'', true)) '
            'WITH CHECK (tenant = current_setting(''engram.tenant'', true))', held);
    END LOOP;
END $$;
