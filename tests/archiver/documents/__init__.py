"""Tests of `archiver/documents`."""
