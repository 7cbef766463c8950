"""Maintenance of a home: health checks, consistency checks with repair, rebuilding, and the status of the archive."""
