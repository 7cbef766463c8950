"""Tests of the templates package."""
