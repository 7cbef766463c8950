"""Tests of Palaver. The folders have the same structure as the packages."""
