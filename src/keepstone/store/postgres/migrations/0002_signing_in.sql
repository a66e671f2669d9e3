-- Access tokens, browser sessions, sign-in links and failed sign-ins, for servers that share this database.
-- They are of the whole home. Secrets are hashes.

CREATE TABLE tokens (
    id text COLLATE "C" PRIMARY KEY,
    digest text COLLATE "C" NOT NULL,
    agents text[],
    read_only boolean NOT NULL,
    created timestamptz NOT NULL,
    expires timestamptz
);

CREATE TABLE sign_ins (
    key text COLLATE "C" PRIMARY KEY,
    is_link boolean NOT NULL,
    token text COLLATE "C",
    until timestamptz NOT NULL
);

CREATE TABLE failed_sign_ins (
    address text COLLATE "C" NOT NULL,
    number bigint GENERATED ALWAYS AS IDENTITY,
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (address, number)
);
CREATE INDEX failed_sign_ins_time ON failed_sign_ins (at);
