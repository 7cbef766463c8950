"""Embedding models: the packaged model and its runtime."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Folder with the files of the packaged model."""
