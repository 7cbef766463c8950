"""Documents: files that no agent wrote, read from allowed folders only and split into chunks for the search."""
