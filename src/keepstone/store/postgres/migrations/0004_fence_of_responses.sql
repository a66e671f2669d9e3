-- Responses may quote memory, so a role sees those of the agent that it names. keepstone itself names all agents by
-- '*', which is no slug, where it keeps the responses of the whole home.
ALTER TABLE answers ENABLE ROW LEVEL SECURITY;
ALTER TABLE answers FORCE ROW LEVEL SECURITY;
CREATE POLICY of_agent ON answers
    USING (current_setting('keepstone.agent', true) IN (agent, '*') AND current_setting('keepstone.agent', true) <> '')
    WITH CHECK (current_setting('keepstone.agent', true) = '*');
