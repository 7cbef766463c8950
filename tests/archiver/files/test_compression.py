"""Compressed transcripts are decompressed while they are read."""

import logging
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.formats.codex import Codex
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.lines import opened
from palaver.archiver.store import Store
from palaver.core.home import Home

from ..formats.codex.codex_lines import SESSION, agent_reply, meta, user_prompt
from ..formats.reading import jsonl

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

DATA = jsonl([meta(), *user_prompt("One"), *agent_reply("Done."), *user_prompt("Two")])
NAME = f"rollout-2026-03-01T10-00-00-{SESSION}.jsonl"


def packed(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(zstd.compress(data))
    return path


def test_a_file_of_another_name_is_opened_as_it_is(tmp_path: Path) -> None:
    """A file without the suffix `.zst` is read unchanged."""
    path = packed(tmp_path / "a.jsonl", DATA)

    with opened(path) as file:
        assert file.read() == path.read_bytes()


@given(data=st.binary(max_size=5000), places=st.lists(st.integers(0, 6000), max_size=5))
def test_any_offset_of_the_content_can_be_read(
    tmp_path_factory: pytest.TempPathFactory, data: bytes, places: list[int]
) -> None:
    """Seeking in a compressed file works forwards and backwards, as in an uncompressed file."""
    path = packed(tmp_path_factory.mktemp("packed") / "a.jsonl.zst", data)

    with opened(path) as file:
        for place in places:
            file.seek(place)
            assert file.read(7) == data[place : place + 7]


@pytest.mark.parametrize("damage", ["cut", "garbled", "not compressed"])
def test_a_damaged_file_ends_where_it_cannot_be_read(
    damage: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A damaged file ends early with a warning in the log, without an exception."""
    data = os.urandom(1 << 20)
    path = packed(tmp_path / "a.jsonl.zst", data)
    whole = path.read_bytes()
    half = len(whole) // 2
    path.write_bytes({"cut": whole[:half], "garbled": whole[:half] + b"\xff" * half}.get(damage, DATA))

    with caplog.at_level(logging.WARNING), opened(path) as file:
        content = file.read()
        file.seek(len(data))

    assert data.startswith(content)
    assert len(content) < len(data)
    assert "is damaged after" in caplog.text


@pytest.fixture
def store(tmp_path: Path) -> Store:
    home = Home(tmp_path / "home")
    home.make()
    return Store.create(home.database)


def ingest(store: Store, tmp_path: Path) -> list[str]:
    raw = RawArchive(tmp_path / "home" / "archive")
    pass_ = Ingest(store, raw).run(in_paths([tmp_path / "sessions"]))
    assert pass_.problems == []
    return [each.exchange.prompt for each in store.exchanges.load(store.items.all_keys()).values()]


def test_a_compressed_rollout_is_copied_exactly_and_read_decompressed(store: Store, tmp_path: Path) -> None:
    """The copy has the bytes of the compressed file. Line numbers refer to the decompressed content."""
    path = packed(tmp_path / "sessions" / f"{NAME}.zst", DATA)

    assert ingest(store, tmp_path) == ["One", "Two"]
    (source,) = store.sources.by_path().values()
    assert (tmp_path / "home" / "archive" / source.archived).read_bytes() == path.read_bytes()
    assert (source.lines, source.parsed, source.pending) == (DATA.count(b"\n"), len(DATA), 0)
    assert store.sources.totals() == (1, path.stat().st_size, source.lines, 0)
    assert recognised(path) == "codex"
    store.close()


def recognised(path: Path) -> str:
    (found,) = in_paths([path])
    known = found.recognise()
    assert known is not None
    return known.agent


def test_a_rollout_that_is_compressed_later_adds_nothing(store: Store, tmp_path: Path) -> None:
    """All lines of the compressed file count as repeated, because it belongs to the same session."""
    plain = tmp_path / "sessions" / NAME
    plain.parent.mkdir()
    plain.write_bytes(DATA)
    before = ingest(store, tmp_path)
    packed(plain.with_name(f"{NAME}.zst"), DATA)
    plain.unlink()

    assert ingest(store, tmp_path) == before == ["One", "Two"]
    assert store.sessions.find("codex", SESSION) is not None
    assert len(store.sources.by_path()) == 2
    store.close()


def test_a_rollout_in_two_storage_formats_is_read_once(tmp_path: Path) -> None:
    """If an uncompressed and a compressed file exist, only the uncompressed file is read."""
    packed(tmp_path / f"{NAME}.zst", DATA)
    (tmp_path / NAME).write_bytes(DATA)

    assert [path.name for path in Codex().transcripts(tmp_path)] == [NAME]
