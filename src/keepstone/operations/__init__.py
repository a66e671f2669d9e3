"""What commands and the server answer: one shape for each result and each error code."""
