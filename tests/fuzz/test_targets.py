"""No input breaks the line reader, the query builder, the redactor or the date parser."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ..faults import payloads
from .targets import TARGETS

CORPUS = Path(__file__).parent / "corpus"
PIECES: dict[str, list[str]] = {
    "lines": ['{"a": 1}', "{", "}", '"', "\\", "\\ud83d", "\n", "\r\n", "\0", "\ufeff", "[", "1e999", ":", " "],
    "records": ['{"type": ', '"user"', '"assistant"', '["user"]', ', "message": ', '{"role": "user", "content": ',
                '"ask"', "[", "]", "{", "}", "null", "7", ', "uuid": ', ', "timestamp": ', ', "payload": ',
                '"id": ', "\n", "\\ud83d"],
    "query": ['"', "*", "(", ")", "AND", "NOT", "-", ":", "id:", "**", "[", "TO", "]", "~2", "^3", "\\", "lease"],
    "redactor": ["password", " = ", '"', "AKIA", "ghp_", "A1b2C3d4E5f6G7h8", "-----BEGIN ", "KEY-----", "[secret:", "]",
                 "://u:p@h", "\n", "eyJ", ".", "Authorization: Bearer "],
    "dates": ["last", "2026", "-", "03", "T", ":", "Z", "weeks", "ago", "march", "999999999", "0", "+", "monday", "٣"],
}  # fmt: skip


@pytest.mark.parametrize("name", TARGETS)
@settings(max_examples=150)
@given(data=st.data())
def test_arbitrary_input_keeps_the_invariants(name: str, data: st.DataObject) -> None:
    """Arbitrary bytes and combinations of meaningful fragments keep each invariant."""
    pieces = st.lists(st.sampled_from(PIECES[name]) | st.text(max_size=8), max_size=30)
    apart, together = pieces.map(" ".join), pieces.map("".join)
    drawn = data.draw(st.binary(max_size=300) | apart | together)
    TARGETS[name](drawn if isinstance(drawn, bytes) else drawn.encode(errors="replace"))


@pytest.mark.parametrize("name", TARGETS)
def test_corpus_keeps_the_invariants(name: str) -> None:
    """Every input of the corpus keeps the invariant, and each target has corpus inputs."""
    found = sorted(CORPUS.glob(f"{name}-*"))
    assert found
    for path in found:
        TARGETS[name](path.read_bytes())


@payloads.needed
@pytest.mark.parametrize("name", TARGETS)
def test_public_lists_keep_the_invariants(name: str) -> None:
    """Hostile strings and broken JSON keep the invariants."""
    for string in payloads.naughty():
        TARGETS[name](string.encode())
    for data in payloads.json_files().values():
        TARGETS[name](data[:5000])


@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("piece", ["(", "a", '"', "NOT ", "[", "{", "*", "-", "\\", "password=", "0"])
def test_repetitive_input(name: str, piece: str) -> None:
    """Tens of thousands of repetitions neither crash nor slow down a target."""
    TARGETS[name](piece.encode() * 20_000)
