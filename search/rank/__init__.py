"""Ranking: the search engine, score fusion, exact phrases and the relevance threshold."""
