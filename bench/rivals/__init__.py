"""Comparison of keepstone with other memory systems on the same questions of LongMemEval."""
