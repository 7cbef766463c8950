"""Tests of the format of OpenCode."""
