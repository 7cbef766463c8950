"""Exports of web services: JSON files, usually in a zip."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.archiver.formats import containers
from palaver.archiver.formats.containers import conversations, head
from palaver.core.errors import SourceUnreadable

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(st.characters())
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(st.characters()), inner, max_size=3),
    max_leaves=6,
)


def saved(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value))
    return path


def packed(path: Path, files: dict[str, Any]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as pack:
        for name, data in files.items():
            pack.writestr(name, data if isinstance(data, bytes) else json.dumps(data))
    return path


@given(st.lists(st.dictionaries(st.text(st.characters()), VALUES, max_size=4), max_size=6), st.integers(1, 40))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_conversation_is_decoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, found: list[dict[str, object]], piece: int
) -> None:
    """Every conversation is decoded, whatever the read size."""
    monkeypatch.setattr(containers, "_PIECE", piece)

    assert list(conversations(saved(tmp_path / "conversations.json", found))) == found


def test_a_file_may_contain_one_conversation_or_none(tmp_path: Path) -> None:
    """A file may contain a single conversation without a list, or no conversation."""
    assert list(conversations(saved(tmp_path / "a.json", {"id": 1}))) == [{"id": 1}]
    assert list(conversations(saved(tmp_path / "a.json", [3, None, "x"]))) == []
    (tmp_path / "a.json").write_bytes(b"\xef\xbb\xbf \n")
    assert list(conversations(tmp_path / "a.json")) == []


def test_only_conversations_are_read_from_a_zip(tmp_path: Path) -> None:
    """Conversation files are read in order of their names. Names that point outside the zip are harmless."""
    files = {
        "conversations-001.json": [{"id": 2}],
        "../../conversations-000.json": [{"id": 1}],
        "user.json": [{"id": 3}],
        "export/conversations.json": [{"id": 4}],
        "conversations.json.html": [{"id": 5}],
    }
    path = packed(tmp_path / "a.zip", files)

    assert [found["id"] for found in conversations(path)] == [1, 2, 4]
    assert [each.name for each in tmp_path.iterdir()] == ["a.zip"]


@pytest.mark.parametrize(
    "data",
    [b'[{"id": 1}, {"id": ', b'[{"id": 1}, nonsense', b'[{"id": 1} x {"id": 2}]', b'[{"id": 1}, ' + b"[" * 99999],
)
def test_conversations_before_the_damage_are_read(tmp_path: Path, data: bytes) -> None:
    """Conversations before the damage are read, then the export is reported as damaged."""
    (tmp_path / "a.json").write_bytes(data)
    found = conversations(tmp_path / "a.json")

    assert next(found) == {"id": 1}
    with pytest.raises(SourceUnreadable, match=r"damaged|nested too deeply"):
        list(found)


@pytest.mark.parametrize("cut", [10, 60, 200])
def test_a_damaged_zip_is_unreadable(tmp_path: Path, cut: int) -> None:
    """A zip truncated at any position is unreadable."""
    path = packed(tmp_path / "a.zip", {"conversations.json": [{"id": n} for n in range(99)]})
    path.write_bytes(path.read_bytes()[:cut])

    assert head(path) == b""
    with pytest.raises(SourceUnreadable, match="damaged"):
        list(conversations(path))


@pytest.mark.parametrize(
    ("name", "limit", "data"),
    [
        ("CONVERSATION_LIMIT", 1 << 16, [{"id": "x" * (1 << 18)}]),
        ("EXPORT_LIMIT", 1 << 20, [{"id": "x" * 1000}] * 9999),
    ],
)
def test_sizes_are_limited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, limit: int, data: object
) -> None:
    """Reading stops for a zip of a few kilobytes that decompresses endlessly."""
    monkeypatch.setattr(containers, name, limit)
    monkeypatch.setattr(containers, "_PIECE", 1 << 12)
    path = packed(tmp_path / "bomb.zip", {"conversations.json": data})

    with pytest.raises(SourceUnreadable, match="larger than"):
        list(conversations(path))
