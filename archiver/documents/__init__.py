"""Documents: files in allowed folders, split into chunks for search."""
