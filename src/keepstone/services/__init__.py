"""The five services: thin ways to one engine, each with the names that its requirement document gives."""
