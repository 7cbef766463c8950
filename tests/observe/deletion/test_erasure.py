"""Unreadable files fail the verification of an erasure, and a long undo is not interrupted."""

# pyright: reportPrivateUsage=false

from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import BinaryIO

import pytest

from palaver.archiver.ingest import recovery
from palaver.core.deletion import DeletionRequest, ErasureCheck
from palaver.observe.deletion import erasure
from palaver.observe.deletion.deleter import Deleter

from ...archiver.history import FORK, ORIGINAL, History, talk


def test_an_unreadable_file_fails_the_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unreadable file fails the verification, and all other files are still searched."""
    for name in ("closed", "open"):
        (tmp_path / name).write_bytes(b"word")
    opened = erasure._contents

    def refused(path: Path) -> Iterator[BinaryIO]:
        if path.name == "closed":
            raise PermissionError(13, "Permission denied")
        yield from opened(path)

    monkeypatch.setattr(erasure, "_contents", refused)
    found = erasure.scan(tmp_path, ["word"])

    assert (found.unreadable, found.found) == (["closed"], ["open"])
    assert not ErasureCheck(unreadable=["closed"]).passed
    assert ErasureCheck().passed


def test_a_long_undo_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An undo completes however long it takes."""
    with History(tmp_path) as history:
        history.write(talk("one"), at=1)
        history.write(talk("two", session=FORK), FORK, at=2)
        history.ingest()
        with Deleter(history.home) as deleter:
            wanted = DeletionRequest(targets=(ORIGINAL, FORK))
            number = deleter.delete(wanted, deleter.preview(wanted).token).number
            assert number
            assert history.stored() == []
            hours = count(step=3600)
            monkeypatch.setattr(recovery, "time", SimpleNamespace(monotonic=lambda: next(hours)))

            deleter.undo(number)

        assert (history.prompts(), history.prompts(FORK)) == (["one?"], ["two?"])
