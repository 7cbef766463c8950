"""Tests of how ONNX Runtime is imported."""

import os
import subprocess
import sys
from pathlib import Path

USED = (
    "import palaver.search.index.vector_index; from palaver.search.model.embedder import load; load().embed(['a text'])"
)


def test_embedding_writes_nothing_to_the_home_folder(tmp_path: Path) -> None:
    """ONNX Runtime writes neither a device ID nor telemetry events."""
    home = {name: str(tmp_path) for name in ("HOME", "USERPROFILE", "XDG_CACHE_HOME", "XDG_DATA_HOME", "LOCALAPPDATA")}
    subprocess.run([sys.executable, "-c", USED], check=True, env={**os.environ, **home})

    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_only_the_encoder_imports_onnxruntime() -> None:
    """Only `encoder.py` imports onnxruntime, after it has disabled the telemetry."""
    root = Path(__file__).parents[3]
    importing = {
        path.relative_to(root).as_posix()
        for folder in ("core", "archiver", "search", "observe", "agents", "templates")
        for path in (root / folder).rglob("*.py")
        if any(word in path.read_text("utf-8") for word in ("import onnxruntime\n", 'import_module("onnxruntime")'))
    }

    assert importing == {"search/model/encoder.py"}
