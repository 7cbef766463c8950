"""Values, errors and settings that all packages share. This package imports no other package of Palaver."""
