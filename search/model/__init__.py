"""Embedding models: the packaged model, how it runs and how it was built."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Folder of the packaged model's files."""
