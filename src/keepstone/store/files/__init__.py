"""The store in files with pgvector: the lines are the truth, beside them what makes them fast."""
