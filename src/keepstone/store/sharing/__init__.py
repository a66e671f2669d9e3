"""Sharing: grants of one agent to another to read and write, and their single check."""
