"""The store in PostgreSQL with pgvector: the lines are the truth; derived tables make queries fast."""
