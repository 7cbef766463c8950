"""Tests of extraction with a language model, against a local server."""
