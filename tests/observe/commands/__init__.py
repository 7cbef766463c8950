"""Tests of searches in the shell commands of past sessions."""
