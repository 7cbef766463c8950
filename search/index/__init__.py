"""Text and vector indexes: what is indexed, how generations are built and published, and the current snapshot."""
