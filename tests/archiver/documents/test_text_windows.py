"""Long text is split into overlapping windows."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.document_reader import OVERLAP, SIZE, windows

TEXTS = st.lists(st.text("ab \u00e9", max_size=120), max_size=40).map("\n".join)


@given(TEXTS, st.integers(10, 80), st.integers(0, 9))
def test_every_word_is_in_a_window(text: str, size: int, overlap: int) -> None:
    """Every word is in a window, and no window exceeds the requested size."""
    found = list(windows(text, size=size, overlap=overlap))

    told = "".join("".join(window.text.split()) for window in windows(text, size=size, overlap=0))
    assert told == "".join(text.split())
    assert all(0 < len(window.text) <= size for window in found)


@given(TEXTS)
def test_a_window_has_the_lines_of_its_text(text: str) -> None:
    """The line numbers of a window are 1-based and match its text."""
    rows = text.split("\n")

    for window in windows(text, first_line=1, size=60, overlap=20):
        lines = "\n".join(rows[window.start_line - 1 : window.end_line])
        assert "".join(window.text.split()) in "".join(lines.split())


def test_windows_are_about_a_thousand_characters_and_overlap() -> None:
    """Each window begins with at most 200 characters from the end of the previous window."""
    text = "\n".join(f"Line {number} says that it is the one of number {number}." for number in range(200))
    found = list(windows(text))

    assert len(found) > 5
    for one, other in pairwise(found):
        shared = one.end_line - other.start_line + 1
        repeated = "\n".join(one.text.split("\n")[-shared:])
        assert SIZE - 100 < len(one.text) <= SIZE
        assert 0 < len(repeated) <= OVERLAP
        assert other.text.startswith(repeated)


def test_paragraphs_are_kept_together() -> None:
    """A cut late in a window moves back to the end of a paragraph."""
    paragraphs = ["\n".join([f"{name} " * 20] * 4) for name in ("one", "two", "three", "four")]

    [first, *_] = windows("\n\n".join(paragraphs), size=700)

    assert first.text == "\n\n".join(paragraphs[:2]).replace(" \n", " \n").rstrip()


def test_blank_text_has_no_window() -> None:
    """Empty text and whitespace yield no window."""
    assert list(windows(" \n\n\t ")) == []


def test_a_long_line_is_cut_at_sentences_that_overlap() -> None:
    """A paragraph on one long line is cut at sentence ends."""
    sentences = [f"Sentence {number} explains why the kiln is heated slowly, step by step." for number in range(60)]
    found = list(windows(" ".join(sentences)))

    assert len(found) > 3
    for one, other in pairwise(found):
        assert one.text.endswith(".")
        assert other.text.startswith("Sentence ")
        repeated = next(size for size in range(OVERLAP, 0, -1) if one.text.endswith(other.text[:size].rstrip()))
        assert repeated > OVERLAP // 2


@given(st.integers(300, 3000), st.integers(1, 3))
def test_no_window_is_only_a_heading(length: int, blanks: int) -> None:
    """A window with a heading also contains the beginning of the following text, even if that line is long."""
    [first, *_] = windows("## Setup" + "\n" * blanks + "word " * (length // 5))

    assert len(first.text) > 250
