"""Tests of the archiver: every transcript line is copied, counted and stored."""
