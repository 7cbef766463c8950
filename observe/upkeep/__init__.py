"""Maintenance of a home: health checks, consistency checks with repair, rebuilding, and archive status."""
