"""Official conformance suite of the Model Context Protocol, run by `make conformance`."""
