"""Limits of the texts on a page. One huge output or line would freeze a browser."""

from typing import Final

from ...core.transcript_page import ClippedText

BLOCK: Final = 64 * 1024
"""Maximum characters of a block of text."""
LINE: Final = 2_000
"""Maximum characters of a line."""
_MARK: Final = " [… {} characters]"


def clip_text(text: str, start: int = 0) -> ClippedText:
    """Return at most `BLOCK` characters of prose from `start` on. `hidden` counts the characters after them."""
    return ClippedText(text[start : start + BLOCK], max(0, len(text) - start - BLOCK))


def clip_block(text: str, start: int = 0) -> ClippedText:
    """Return at most `BLOCK` characters of code or output from `start` on, with long lines clipped.

    `hidden` counts the characters after the block. Characters of clipped lines are counted on their line.
    """
    block, hidden = clip_text(text, start).text, max(0, len(text) - start - BLOCK)
    return ClippedText("\n".join(map(clip_line, block.split("\n"))) if len(block) > LINE else block, hidden)


def clip_line(line: str) -> str:
    """Return a line of at most `LINE` characters. A note states how many characters were left out."""
    if len(line) <= LINE:
        return line
    # The note itself must fit into the line.
    kept = LINE - len(_MARK.format(len(line)))
    return line[:kept] + _MARK.format(len(line) - kept)
