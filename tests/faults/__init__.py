"""Tests of crashes, power loss, corruption and hostile input."""
