-- A database that has no statistics yet, as after an import, took the index of ids to find a line by its place, and so
-- read the whole session for each entry. It cannot if the id comes before the session.
DROP INDEX lines_id;
CREATE INDEX lines_id ON lines (agent, id, session);
