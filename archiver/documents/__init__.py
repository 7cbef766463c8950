"""Documents: files that were not written by agents, read from allowed folders and chunked for search."""
