"""Pages of a session for people: exchanges as steps, opened tool calls, outlines, edits and matches of a text."""
