"""The NDJSON log of a session: parsing, folding, appending and rewriting."""
