"""Tests of observe/upkeep."""
