"""The store in PostgreSQL with pgvector: the lines are the truth, beside them what makes them fast."""
