-- What agents grant to others, a row for each line of grants.ndjson; types and tags as in entries.

CREATE TABLE IF NOT EXISTS grants (
    agent text COLLATE "C" NOT NULL,
    place bigint GENERATED ALWAYS AS IDENTITY,
    "to" text COLLATE "C" NOT NULL,
    may text NOT NULL CHECK (may IN ('read', 'write', 'nothing')),
    types text[],
    tags text[],
    until timestamptz,
    by text,
    ts timestamptz NOT NULL,
    PRIMARY KEY (agent, place)
);
CREATE INDEX IF NOT EXISTS grants_to ON grants (agent, "to", ts, place);
ALTER TABLE grants ENABLE ROW LEVEL SECURITY;
ALTER TABLE grants FORCE ROW LEVEL SECURITY;
DROP POLICY IF EXISTS of_agent ON grants;
CREATE POLICY of_agent ON grants USING (agent = current_setting('keepstone.agent', true))
    WITH CHECK (agent = current_setting('keepstone.agent', true));
-- An agent that is purged takes with it what others granted to it.
DROP POLICY IF EXISTS seen_by_receiver ON grants;
CREATE POLICY seen_by_receiver ON grants FOR SELECT USING ("to" = current_setting('keepstone.agent', true));
DROP POLICY IF EXISTS given_back ON grants;
CREATE POLICY given_back ON grants FOR DELETE USING ("to" = current_setting('keepstone.agent', true));

-- The third fence: whoever reads or writes for another agent, which keepstone.reader or keepstone.writer names, finds
-- and leaves only what the newest grant covers at that moment. These policies add to those of 0001 by AND. The
-- subqueries without a column are evaluated once a query, so that an agent's own queries cost no more.
DO $$
DECLARE
    command record;
BEGIN
    FOR command IN SELECT * FROM (VALUES
        ('granted_reading', 'SELECT', 'USING', 'reader', '(''read'', ''write'')'),
        ('granted_adding', 'INSERT', 'WITH CHECK', 'writer', '(''write'')'),
        ('granted_changing', 'UPDATE', 'USING (true) WITH CHECK', 'writer', '(''write'')'))
        AS commands (name, verb, clause, setting, words)
    LOOP
        EXECUTE format('DROP POLICY IF EXISTS %I ON entries', command.name);
        EXECUTE format($policy$
            CREATE POLICY %I ON entries AS RESTRICTIVE FOR %s %s (
                (SELECT coalesce(current_setting('keepstone.%s', true), '') = '')
                OR EXISTS (
                    SELECT 1 FROM (
                        SELECT * FROM grants g
                        WHERE g.agent = entries.agent AND g."to" = current_setting('keepstone.%s', true)
                            AND g.ts <= nullif(current_setting('keepstone.moment', true), '')::timestamptz
                        ORDER BY g.ts DESC, g.place DESC LIMIT 1
                    ) newest
                    WHERE newest.may IN %s
                        AND (newest.until IS NULL
                            OR newest.until > nullif(current_setting('keepstone.moment', true), '')::timestamptz)
                        AND (newest.types IS NULL OR entries.type = ANY (newest.types))
                        AND (newest.tags IS NULL OR entries.tags @> newest.tags)
                )
            )$policy$, command.name, command.verb, command.clause, command.setting, command.setting, command.words);
    END LOOP;
    DROP POLICY IF EXISTS granted_reading ON lines;
    EXECUTE $policy$
        CREATE POLICY granted_reading ON lines AS RESTRICTIVE FOR SELECT USING (
            (SELECT coalesce(current_setting('keepstone.reader', true), '') = '')
            OR EXISTS (
                SELECT 1 FROM entries e
                WHERE e.agent = lines.agent AND e.session = lines.session AND e.id = lines.id
            )
        )$policy$;
END
$$;

-- Roles that may use the other tables may use this one.
DO $$
DECLARE
    each record;
BEGIN
    FOR each IN SELECT DISTINCT grantee FROM information_schema.role_table_grants
        WHERE table_schema = current_schema() AND table_name = 'tokens' AND privilege_type = 'INSERT'
    LOOP
        EXECUTE 'GRANT SELECT, INSERT, UPDATE, DELETE ON grants TO '
            || CASE WHEN each.grantee = 'PUBLIC' THEN 'PUBLIC' ELSE quote_ident(each.grantee) END;
    END LOOP;
END
$$;
