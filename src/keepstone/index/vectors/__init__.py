"""Vectors: the table, segments, the write buffer, HNSW and their search."""
