"""Tests of the rag tools against their specification."""
