"""Tests of the recognition of secrets and of their placeholders."""
