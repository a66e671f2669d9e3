"""The NDJSON log: its lines, how they are read and folded, and how the file is rewritten."""
