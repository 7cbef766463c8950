"""Search over exchanges, observations, memories, documents and code."""
