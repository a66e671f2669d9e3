"""File system access: layouts, confined opening, locks and fork handlers."""
