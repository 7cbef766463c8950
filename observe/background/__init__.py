"""Work in the background: archiving and indexing."""
