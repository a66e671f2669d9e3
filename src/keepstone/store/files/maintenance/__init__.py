"""Doctor, repair and backup of a home of files."""
