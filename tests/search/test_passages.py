"""Does a passage from the middle say what the whole conversation says there?"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.archiver.copies.sealing import Sealer
from palaver.core.disclosure import Transcript
from palaver.search import passages
from palaver.search.layers import Layers

from ..archiver.formats.claude import replied, result, said, text, tool
from ..archiver.history import ORIGINAL, History

STEPS = 40


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    """A session of two exchanges, each a prompt, forty calls with their results, and an answer."""
    with History(tmp_path) as made:
        made.write([line for number in range(2) for line in exchange(number)])
        made.ingest()
        yield made


def exchange(number: int) -> Iterator[dict[str, object]]:
    yield said(f"ask {number}", uuid=f"q{number}", sessionId=ORIGINAL)
    for step in range(STEPS):
        name = f"{number}-{step}"
        yield replied(tool("Read", {"file_path": f"/x/{step}.py"}, id=f"t{name}"), id=f"m{name}", uuid=f"c{name}")
        yield result(f"printed {name}", id=f"t{name}")
    yield replied(text(f"answer {number}"), id=f"e{number}", uuid=f"e{number}")


@pytest.mark.parametrize("sealed", [False, True])
@pytest.mark.parametrize("lead", [0, 1, 7])
def test_the_middle_of_a_long_exchange(
    history: History, monkeypatch: pytest.MonkeyPatch, sealed: bool, lead: int
) -> None:
    """Reading that begins in the midst of an exchange gives the same turns, under the same exchange, as reading all."""
    archived = history.source().archived
    with Layers(history.home) as layers:
        expected = {start: told(layers.read(archived, start, start + 9)) for start in range(1, 160, 3)}
        if sealed:
            assert Sealer(history.store, history.raw).run(budget=60).sealed == 1
        monkeypatch.setattr(passages, "_LEAD", lead)
        assert {start: told(layers.read(archived, start, start + 9)) for start in expected} == expected


def told(transcript: Transcript) -> list[object]:
    return [
        (each.ordinal, each.span, each.started, [(t.line, t.text) for t in each.turns]) for each in transcript.exchanges
    ]
