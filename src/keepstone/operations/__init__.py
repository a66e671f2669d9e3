"""Results shared by the command and the server: one shape per result, and the error codes."""
