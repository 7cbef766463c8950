"""Tests of the format of Kimi CLI."""
