"""Answers from the shell commands of past sessions, read from the archived exchanges when asked."""
