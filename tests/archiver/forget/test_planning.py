"""What finding the extent of a deletion costs."""

from pathlib import Path

import pytest

from palaver.archiver.privacy.masker import Masker
from palaver.core.forgetting import Wanted

from ..history import ORIGINAL, History, talk
from .steps import OTHER, plan


def test_other_copies_are_compared_without_masking_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Masking is slow, so only lines of what goes are masked; the same lines elsewhere are found all the same."""
    masked: list[bytes] = []
    mask = Masker.masked

    def counted(self: Masker, line: bytes) -> bytes:
        masked.append(line)
        return mask(self, line)

    with History(tmp_path) as history:
        history.write(talk("one"))
        history.write(talk(*map(str, range(50)), session=OTHER), OTHER)
        history.write(talk("one"), "again")
        history.ingest()
        monkeypatch.setattr(Masker, "masked", counted)
        found = plan(history, Wanted(targets=(ORIGINAL,)))

    assert len(masked) < 10
    assert found.selected.sessions
    assert len(found.selected.sources) == 2
