"""Tests of the fabric tools against their specification."""
