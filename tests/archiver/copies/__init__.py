"""Tests of raw copies: content, storage formats, checksums, verification and export."""
