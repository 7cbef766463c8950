"""The format of cursor."""
