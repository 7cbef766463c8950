"""Tests of Palaver; the folders mirror the packages."""
