"""Reading of a raw copy. The result is its new exchanges and the outcome of each line, such as `parsed`."""
