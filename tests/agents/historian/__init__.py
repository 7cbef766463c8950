"""Tests of the Historian tools against their specification."""
