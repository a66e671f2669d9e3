"""Words: the full-text table, postings, BM25 and their search."""
