"""Values, errors and settings shared by all packages. This package imports no other package of Palaver."""
