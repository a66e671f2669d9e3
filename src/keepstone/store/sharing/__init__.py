"""Sharing: what one agent lets another one read and write, and the one check of it."""
