"""The store in files: the lines are the truth, and the index beside them makes queries fast."""
