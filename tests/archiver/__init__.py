"""Tests of the archiver: every transcript line is kept and accounted for."""
