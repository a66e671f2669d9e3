"""The file store: the lines of the logs are the source of truth, and an index makes queries fast."""
