"""Text and vector indexes: indexed content, generations, their publication, and the current snapshot."""
