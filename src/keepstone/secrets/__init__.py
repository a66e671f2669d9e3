"""Secrets in texts and log lines: their kinds, and what a home does about them."""
