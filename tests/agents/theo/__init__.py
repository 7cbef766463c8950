"""Tests of the Theo tools against their specification."""
