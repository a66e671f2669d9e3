"""Text: its words, and how it is shown to people."""
