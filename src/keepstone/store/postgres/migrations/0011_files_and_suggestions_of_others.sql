-- No grant covers an agent's files and suggestions: whoever reads or writes for another agent, which keepstone.reader
-- or keepstone.writer names, finds none and leaves none.
DO $$
DECLARE
    each text;
BEGIN
    FOREACH each IN ARRAY ARRAY['files', 'suggestions'] LOOP
        EXECUTE format('DROP POLICY IF EXISTS never_granted ON %I', each);
        EXECUTE format($policy$
            CREATE POLICY never_granted ON %I AS RESTRICTIVE USING (
                coalesce(current_setting('keepstone.reader', true), '') = ''
                AND coalesce(current_setting('keepstone.writer', true), '') = ''
            )$policy$, each);
    END LOOP;
END
$$;
