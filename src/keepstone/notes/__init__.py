"""Notes in AGENTS.md and in the user's file, edited byte for byte."""
