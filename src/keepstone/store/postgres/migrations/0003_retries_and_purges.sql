-- Responses to requests with an idempotency key, for servers that share this database; and digests of purged ids.

-- Of the whole home. A row without a status is a request in progress. ``agent`` is the agent of the request's path,
-- empty for none: a purge of its entries removes the responses, which may quote them.
CREATE TABLE answers (
    holder text COLLATE "C" NOT NULL,
    key text COLLATE "C" NOT NULL,
    agent text COLLATE "C" NOT NULL,
    request bytea NOT NULL,
    token bigint NOT NULL,
    purged boolean NOT NULL DEFAULT false,
    status integer,
    headers bytea,
    body bytea,
    until timestamptz NOT NULL,
    PRIMARY KEY (holder, key)
);
CREATE INDEX answers_until ON answers (until);
CREATE INDEX answers_kept ON answers (holder, until) WHERE body IS NOT NULL;
CREATE INDEX answers_agent ON answers (agent);

-- The digests of what was purged, as in the file .purged.ndjson; the empty one says that purges are recorded.
-- ``vanished`` are those of what an agent had that was purged whole.
CREATE TABLE purged (
    agent text COLLATE "C" NOT NULL,
    vanished boolean NOT NULL,
    digest text COLLATE "C" NOT NULL,
    PRIMARY KEY (agent, vanished, digest)
);
ALTER TABLE purged ENABLE ROW LEVEL SECURITY;
ALTER TABLE purged FORCE ROW LEVEL SECURITY;
CREATE POLICY of_agent ON purged USING (agent = current_setting('keepstone.agent', true))
    WITH CHECK (agent = current_setting('keepstone.agent', true));

-- Roles that may use the other tables may use these.
DO $$
DECLARE
    each record;
BEGIN
    FOR each IN SELECT DISTINCT grantee FROM information_schema.role_table_grants
        WHERE table_schema = current_schema() AND table_name = 'tokens' AND privilege_type = 'INSERT'
    LOOP
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON answers, purged TO '
            || CASE WHEN each.grantee = 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(each.grantee) END;
    END LOOP;
END
$$;
