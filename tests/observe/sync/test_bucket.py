"""A bucket of an object store serves as the shared folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from palaver.core.errors import SyncRefused
from palaver.observe.archive import Archive

from ...object_store import s3_bucket
from .devices import PASSPHRASE, Machine

BUCKET = "s3://archives/palaver"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """URL of an empty bucket on a local S3 server."""
    with s3_bucket(monkeypatch, "archives"):
        yield BUCKET


def sync(machine: Machine, place: str) -> None:
    with Archive(machine.home) as archive:
        archive.synchronizer(PASSPHRASE).exchange(place)


def test_two_machines_share_a_bucket(tmp_path: Path, bucket: str) -> None:
    """Transcripts and deletions travel through the bucket, and leaving empties a machine's part of it."""
    first, second = Machine(tmp_path / "a"), Machine(tmp_path / "b")
    first.write("talk-1", "invoice")
    first.write("talk-1", "parcel")
    sync(first, bucket)
    sync(second, bucket)
    assert second.words() == {"invoice", "parcel"}
    second.forget("invoice", erase=True)
    for machine in (second, first, second):
        sync(machine, bucket)
    assert first.words() == second.words() == {"parcel"}
    with Archive(first.home) as archive:
        assert archive.synchronizer().leave() == bucket
    with Archive(second.home) as archive:
        assert archive.synchronizer().status(archive.store).devices == []


@pytest.mark.usefixtures("bucket")
def test_an_unreachable_bucket_is_a_clear_error(tmp_path: Path) -> None:
    """The message names the bucket and what to check."""
    machine = Machine(tmp_path / "a")
    machine.ingest()
    with pytest.raises(SyncRefused, match="missing-bucket") as caught:
        sync(machine, "s3://missing-bucket/palaver")
    assert "credentials" in caught.value.hint
