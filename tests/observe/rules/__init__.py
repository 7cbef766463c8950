"""Tests of the rule-based extractor."""
