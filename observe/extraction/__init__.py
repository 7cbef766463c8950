"""Storage of extracted observations, detection of repeated observations, and proposals of preferences."""
