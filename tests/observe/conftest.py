"""What do tests of learning begin with?"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..archiver.history import History, talk


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """An archive with one session, of which nothing was learned yet."""
    with History(tmp_path) as made:
        made.write(talk("first"))
        made.ingest()
        yield made
