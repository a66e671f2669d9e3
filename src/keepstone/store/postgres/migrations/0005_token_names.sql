-- What people call an access token; empty for those made before tokens had names.
ALTER TABLE tokens ADD COLUMN IF NOT EXISTS name text NOT NULL DEFAULT '';
