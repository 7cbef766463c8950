"""Embedding models: the packaged model, its runtime and its build script."""

from pathlib import Path

FOLDER = Path(__file__).parent
"""Folder with the files of the packaged model."""
