"""Tests of the limits of texts on a page."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.observe.transcript.clipping import BLOCK, LINE, clip_block, clip_line, clip_text


def repeated(words: list[str], times: int) -> str:
    return "".join(words) * times


words = st.lists(st.sampled_from(["a", "\n", "é", "\N{PILE OF POO}", " "]), max_size=40)
texts = st.builds(repeated, words, st.integers(1, 5_000))


@given(texts)
def test_no_line_and_no_block_is_longer_than_its_limit(text: str) -> None:
    clipped = clip_block(text)

    assert all(len(line) <= LINE for line in clipped.text.split("\n"))
    assert len(clipped.text) <= BLOCK
    assert clipped.hidden == max(0, len(text) - BLOCK)


@given(texts)
def test_the_blocks_of_a_text_are_the_whole_text(text: str) -> None:
    blocks, start = list[str](), 0
    while start < len(text):
        clipped = clip_text(text, start)
        blocks.append(clipped.text)
        start += len(clipped.text)
        assert clipped.hidden == len(text) - start

    assert "".join(blocks) == text


@given(st.text(max_size=50))
def test_short_texts_are_unchanged(text: str) -> None:
    assert clip_block(text).text == text


def test_a_clipped_line_states_how_much_is_missing() -> None:
    line = clip_line("x" * 5_000)

    kept, _, note = line.partition(" ")
    assert note == f"[… {5_000 - len(kept)} characters]"
