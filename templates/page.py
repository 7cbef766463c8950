"""Pages: what was rendered, with what it costs. A part of several pages is rendered and counted once for all."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from ..core.tokens import Tally, price, tally, together

TOKENS: Final = "\0"
"""Stands for the page's own tokens until they can be counted. Shown text never holds a NUL: `quote` removes it."""
_SLOT: Final = re.compile("(\x01[0-9]+\x01)")
"""Stands for a part, on a line of its own. Shown text holds none of these either."""


class Page(NamedTuple):
    """A rendered text, and what its tokens are made of."""

    text: str
    tally: Tally

    @property
    def tokens(self) -> int:
        """What it costs."""
        return price(self.tally)


def slots(parts: Sequence[Page]) -> list[str]:
    """What a template puts where these parts belong."""
    return [f"\x01{place}\x01" for place in range(len(parts))]


def filled(frame: str, parts: Sequence[Page] = ()) -> Page:
    """What a template rendered, with the parts in their slots, and what all of it costs where its tokens are told."""
    known = dict(zip(slots(parts), parts, strict=True))
    pieces = _SLOT.split(frame)
    own = "".join(piece for piece in pieces if piece not in known)
    text = "".join(known[piece].text if piece in known else piece for piece in pieces)
    told = together([tally(own), *(known[piece].tally for piece in pieces if piece in known)])
    if TOKENS not in own:
        return Page(text, told)
    tokens = str(price(told))
    return Page(text.replace(TOKENS, tokens), together([told, tally(tokens)]))
