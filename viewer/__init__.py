"""Viewer: web pages of the archive, for a browser on this machine."""
