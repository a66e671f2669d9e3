"""Where files lie, and how they are opened, locked and kept apart from a fork."""
