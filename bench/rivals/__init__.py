"""Other memories, asked the same questions of LongMemEval in the same loop."""
