-- When an entry was purged, which is shown by day; those purged before, and renamed sessions, have no time.
ALTER TABLE purged ADD COLUMN ts timestamptz;
