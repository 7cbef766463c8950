"""Tests of the database: connection, migrations and tables."""
