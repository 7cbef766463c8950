"""Is a plain text cut into the same pieces without the tokenizer as with it?"""

import ast
import string
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer

from palaver.search.model import FOLDER
from palaver.search.model.encoder import TOKENIZER, open_tokenizer
from palaver.search.model.vocabulary import Pieces, Vocabulary

TOLD = (FOLDER / TOKENIZER).read_bytes()
VOCABULARY, WHOLE = Vocabulary(TOLD), open_tokenizer(TOLD)
WORDS = st.sampled_from(["unkettled", "the", "http2", "E0502", "don't", "frame_decoder.rs:214", "a" * 100, "zqxj" * 10])


def by_tokenizer(text: str, tokenizer: Tokenizer = WHOLE) -> Pieces:
    made = tokenizer.encode(text)
    return Pieces(made.ids, made.offsets[1:-1])


@given(st.text(st.sampled_from(string.printable), max_size=254))
def test_printable_signs(text: str) -> None:
    """Whatever is plain has the pieces that the tokenizer gives it, in the same places."""
    pieces = VOCABULARY.pieces(text)

    assert pieces is None or pieces == by_tokenizer(text)


@given(st.lists(WORDS | st.text(st.sampled_from(string.ascii_letters), max_size=30), max_size=8).map(" ".join))
def test_words(text: str) -> None:
    """Words of any length, known or not, are cut as the tokenizer cuts them."""
    if len(text) <= 254:
        assert VOCABULARY.pieces(text) == by_tokenizer(text)


def test_what_people_write() -> None:
    """The first lines of this project's docstrings are plain, and cut alike."""
    root = Path(next(iter(__import__("palaver").__path__)))
    trees = [ast.parse(path.read_bytes()) for path in sorted((root / "core").glob("*.py"))]
    texts = [line for tree in trees for line in (ast.get_docstring(tree) or "").splitlines() if line.isascii()]

    assert len(texts) > 30
    assert [VOCABULARY.pieces(text) for text in texts] == [by_tokenizer(text) for text in texts]


@pytest.mark.parametrize(
    "text",
    ["é", "日本", "a\x00b", "a\x0bb", "a\x7fb", "[SEP]", "a [MASK] b", "x" * 101, "word " * 51, "\u2019", "a\u00a0b"],
    ids=ascii,
)
def test_what_is_not_plain(text: str) -> None:
    """Other scripts, signs that nobody sees, the model's own signs and what it would cut are left to the tokenizer."""
    assert VOCABULARY.pieces(text) is None


def test_every_piece_is_found() -> None:
    """Each piece that a plain text can have is found with the number that the tokenizer knows it by."""
    known = {
        piece: number
        for piece, number in WHOLE.get_vocab().items()
        if piece.isascii() and (len(piece) == 1 or piece.isalnum())
    }
    found = {piece: pieces.ids for piece in known if (pieces := VOCABULARY.pieces(piece)) is not None}

    assert len(known) > 20_000
    assert found == {piece: [101, number, 102] for piece, number in known.items() if piece != "["}


@pytest.mark.parametrize("told", [b"", b"no tokenizer", b'{"model":{"vocab":{}}}', b'"vocab":{\n"a":1'])
def test_what_has_no_vocabulary(told: bytes) -> None:
    """A file of another form is refused when it is opened."""
    with pytest.raises(ValueError, match="not found"):
        Vocabulary(told)


def test_an_unknown_word_is_left_to_the_tokenizer() -> None:
    """What is made of no known pieces is not guessed at."""
    rows = b'{"model":{"vocab":{\n"##b":3,\n"[CLS]":1,\n"[SEP]":2,\n"a":4\n}}}'
    small = Vocabulary(rows)

    assert small.pieces("ab a") == Pieces([1, 4, 3, 4, 2], [(0, 1), (1, 2), (3, 4)])
    assert small.pieces("ac") is None
