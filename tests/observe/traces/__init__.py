"""Tests of code traces."""
