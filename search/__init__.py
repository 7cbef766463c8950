"""Search: queries, indexes, ranking and the presentation of results over one archive."""
