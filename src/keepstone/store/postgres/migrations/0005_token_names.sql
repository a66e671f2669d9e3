-- What people call an access token; empty for those made before tokens had names.
ALTER TABLE tokens ADD COLUMN name text NOT NULL DEFAULT '';
