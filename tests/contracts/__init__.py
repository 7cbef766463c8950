"""Contract tests: one suite for each seam, run on every implementation of its protocol."""
