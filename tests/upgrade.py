"""Functions that make a home look like one written by another version."""

import hashlib
import json
from pathlib import Path


def outdate(index: Path) -> None:
    """Mark the published generation as made by another version."""
    current = index / "CURRENT"
    name = current.read_text().split()[0]
    manifest = index / name / "manifest.json"
    text = json.dumps({**json.loads(manifest.read_bytes()), "format": 1}).encode()
    manifest.write_bytes(text)
    current.write_text(f"{name} {hashlib.sha256(text).hexdigest()}")
