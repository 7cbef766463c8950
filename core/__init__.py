"""Values, errors and settings shared by all packages. Imports nothing else of Palaver."""
