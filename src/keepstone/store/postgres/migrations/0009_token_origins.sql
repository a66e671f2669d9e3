-- Who writes with an access token; those made before tokens had an origin are programs'.
ALTER TABLE tokens ADD COLUMN IF NOT EXISTS origin text NOT NULL DEFAULT 'program';
