-- The lines of suggestions, as in the file suggestions.ndjson.
CREATE TABLE suggestions (
    agent text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    line bytea NOT NULL,
    PRIMARY KEY (agent, seq)
);
ALTER TABLE suggestions ENABLE ROW LEVEL SECURITY;
ALTER TABLE suggestions FORCE ROW LEVEL SECURITY;
CREATE POLICY of_agent ON suggestions USING (agent = current_setting('keepstone.agent', true))
    WITH CHECK (agent = current_setting('keepstone.agent', true));

-- Roles that may use the other tables may use this one.
DO $$
DECLARE
    each record;
BEGIN
    FOR each IN SELECT DISTINCT grantee FROM information_schema.role_table_grants
        WHERE table_schema = current_schema() AND table_name = 'tokens' AND privilege_type = 'INSERT'
    LOOP
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON suggestions TO '
            || CASE WHEN each.grantee = 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(each.grantee) END;
    END LOOP;
END
$$;
