"""Windows: long text in stretches that overlap."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.documents.windows import OVERLAP, SIZE, windows

TEXTS = st.lists(st.text("ab \u00e9", max_size=120), max_size=40).map("\n".join)


@given(TEXTS, st.integers(10, 80), st.integers(0, 9))
def test_every_word_stands_in_a_window(text: str, size: int, overlap: int) -> None:
    """Nothing that is not blank is left out, and no window is longer than asked for."""
    found = list(windows(text, size=size, overlap=overlap))

    told = "".join("".join(window.text.split()) for window in windows(text, size=size, overlap=0))
    assert told == "".join(text.split())
    assert all(0 < len(window.text) <= size for window in found)


@given(TEXTS)
def test_lines_are_those_of_the_text(text: str) -> None:
    """What a window shows stands on the lines it names."""
    rows = text.split("\n")

    for window in windows(text, first_line=1, size=60, overlap=20):
        lines = "\n".join(rows[window.start_line - 1 : window.end_line])
        assert "".join(window.text.split()) in "".join(lines.split())


def test_windows_are_about_a_thousand_characters_and_overlap() -> None:
    """Each begins with the end of the one before, at most 200 characters of it."""
    text = "\n".join(f"Line {number} says that it is the one of number {number}." for number in range(200))
    found = list(windows(text))

    assert len(found) > 5
    for one, other in pairwise(found):
        shared = one.end_line - other.start_line + 1
        repeated = "\n".join(one.text.split("\n")[-shared:])
        assert SIZE - 100 < len(one.text) <= SIZE
        assert 0 < len(repeated) <= OVERLAP
        assert other.text.startswith(repeated)


def test_a_paragraph_is_kept_together() -> None:
    """Where one ends late enough in a window, it is cut there."""
    paragraphs = ["\n".join([f"{name} " * 20] * 4) for name in ("one", "two", "three", "four")]

    [first, *_] = windows("\n\n".join(paragraphs), size=700)

    assert first.text == "\n\n".join(paragraphs[:2]).replace(" \n", " \n").rstrip()


def test_blank_text_has_no_window() -> None:
    """Not one of no characters."""
    assert list(windows(" \n\n\t ")) == []
