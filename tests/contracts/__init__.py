"""Contract tests: one suite for each protocol, run on each of its implementations."""
