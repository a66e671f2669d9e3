-- The log of every session, what its lines come to, and what finds it.
--
-- The agent comes first in every key, so that each table can be distributed by it. The exceptions have no agent
-- column: they are of the whole home, and become reference tables.
--
-- Names (session, id, type, tag, head) are texts in which the characters 0 and 1 are written as 1 1 and 1 2,
-- since PostgreSQL refuses NUL; that keeps their order, which is that of code points (COLLATE "C").

CREATE TABLE home (
    key text COLLATE "C" PRIMARY KEY,
    value text NOT NULL
);

CREATE TABLE agents (
    agent text COLLATE "C" PRIMARY KEY
);

-- A session's row is its lock: who writes holds it until the commit.
CREATE TABLE sessions (
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    next_seq bigint NOT NULL DEFAULT 1,
    entries bigint NOT NULL DEFAULT 0,
    texts bigint NOT NULL DEFAULT 0,
    words bigint NOT NULL DEFAULT 0,
    size bigint NOT NULL DEFAULT 0,
    compacted bigint NOT NULL DEFAULT 0,
    modified timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (agent, session)
);

-- The truth: each line as bytes, since text and jsonb refuse NUL. ``archived`` lines are history only; a
-- ``folded`` line repeats what the archived lines of its entry come to, and stands where the first of them stood.
CREATE TABLE lines (
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    seq bigint NOT NULL,
    folded boolean NOT NULL DEFAULT false,
    archived boolean NOT NULL DEFAULT false,
    id text COLLATE "C",
    ts timestamptz,
    line bytea NOT NULL,
    PRIMARY KEY (agent, session, seq, folded)
);
CREATE INDEX lines_id ON lines (agent, session, id);

-- Live entries. ``record`` is what the lines come to, null where the line at ``seq`` alone says it. ``terms``
-- are digests of the agent and each stem of the text, ``times`` how often each stands there.
CREATE TABLE entries (
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    id text COLLATE "C" NOT NULL,
    key bigint GENERATED ALWAYS AS IDENTITY,
    seq bigint NOT NULL,
    ts timestamptz NOT NULL,
    type text COLLATE "C" NOT NULL,
    pinned boolean NOT NULL,
    tags text[] NOT NULL,
    targets text[] NOT NULL,
    facts bigint[] NOT NULL,
    head text NOT NULL,
    sum bigint,
    length integer NOT NULL,
    terms bigint[] NOT NULL,
    times integer[] NOT NULL,
    record bytea,
    PRIMARY KEY (agent, session, id)
);
CREATE UNIQUE INDEX entries_key ON entries (agent, key);
CREATE INDEX entries_id ON entries (agent, id);
CREATE INDEX entries_place ON entries (agent, session, seq);
CREATE INDEX entries_order ON entries (agent, session, ts, seq);
CREATE INDEX entries_time ON entries (agent, ts, session, seq);
CREATE INDEX entries_pinned ON entries (agent, ts) WHERE pinned;
CREATE INDEX entries_standing ON entries (agent, ts, session, seq) WHERE type IN ('decision', 'preference');
CREATE INDEX entries_targets ON entries USING gin (targets) WHERE targets <> '{}';
CREATE INDEX entries_facts ON entries USING gin (facts) WITH (gin_pending_list_limit = 256);
CREATE INDEX entries_terms ON entries USING gin (terms) WITH (gin_pending_list_limit = 256);

-- Vectors, given or made, of what entries say now.
CREATE TABLE vectors (
    agent text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    key bigint NOT NULL,
    session text COLLATE "C" NOT NULL,
    embedding vector NOT NULL,
    PRIMARY KEY (agent, space, key)
);
CREATE INDEX vectors_session ON vectors (agent, space, session);
CREATE INDEX vectors_key ON vectors (agent, key);

-- How many vectors a session has in each space; the session's row guards it.
CREATE TABLE spaces (
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    space text COLLATE "C" NOT NULL,
    dim integer NOT NULL,
    vectors bigint NOT NULL,
    PRIMARY KEY (agent, session, space)
);

CREATE TABLE files (
    agent text COLLATE "C" NOT NULL,
    path text COLLATE "C" NOT NULL,
    content bytea NOT NULL,
    modified timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (agent, path)
);

CREATE TABLE dropped (
    agent text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL,
    ts timestamptz NOT NULL,
    PRIMARY KEY (agent, session, ts)
);

-- What happened to sessions, for those who watch. The token tells a writer whose connection was cut at the commit
-- whether it succeeded; the transaction's number does not, as a crash of the server gives numbers again.
CREATE TABLE events (
    agent text COLLATE "C" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    session text COLLATE "C" NOT NULL,
    id text COLLATE "C",
    kind text NOT NULL,
    xid xid8 NOT NULL,
    token bigint NOT NULL,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (agent, number)
);
CREATE INDEX events_xid ON events (agent, xid);

-- The second fence: a role that is no superuser sees the rows of one agent at a time.
DO $$
DECLARE
    each text;
BEGIN
    FOREACH each IN ARRAY ARRAY['sessions', 'lines', 'entries', 'vectors', 'spaces', 'files', 'dropped', 'events'] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', each);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', each);
        EXECUTE format(
            'CREATE POLICY of_agent ON %I USING (agent = current_setting(''keepstone.agent'', true)) '
            'WITH CHECK (agent = current_setting(''keepstone.agent'', true))', each);
    END LOOP;
END
$$;
