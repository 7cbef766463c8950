"""Background work: archiving, indexing and extraction with a language model."""
