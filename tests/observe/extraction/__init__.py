"""Tests of storing extracted observations."""
