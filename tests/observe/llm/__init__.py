"""The language model stage, against a server of our own."""
