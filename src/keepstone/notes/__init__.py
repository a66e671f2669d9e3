"""AGENTS.md and the file of the user, edited byte-exactly."""
