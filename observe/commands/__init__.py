"""Search in the shell commands of past sessions, for `palaver how` and `palaver fix`."""
