"""Reading of one raw copy, which yields its new exchanges and an outcome for each line, such as `parsed`."""
