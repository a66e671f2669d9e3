"""Text: tokenization, and display for people."""
