"""Presentation of results: hits, details, transcript pages, snippets and zero-result explanations."""
