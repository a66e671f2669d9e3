-- How many lives of a purged id are over: it may be added again, and begins its next life then.
ALTER TABLE purged ADD COLUMN life integer NOT NULL DEFAULT 1;
