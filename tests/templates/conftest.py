"""Golden files: `pytest tests/templates --update-golden` rewrites them, for review as a diff."""

from collections.abc import Callable
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[str, str], None]:
    """Return a function that compares a rendered text with a named golden file."""

    def compare(name: str, rendered: str) -> None:
        file = GOLDEN / f"{name}.md"
        if request.config.getoption("--update-golden", default=False):
            file.parent.mkdir(exist_ok=True)
            file.write_text(rendered, "utf-8")
        assert rendered == file.read_text("utf-8")

    return compare
