"""Detection of secrets in texts and log lines, and masking or refusing them."""
