"""Tests of the storage of extracted observations."""
