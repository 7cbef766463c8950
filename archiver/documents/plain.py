"""Plain text, in windows."""

from ...core.document import Chunk
from .windows import windows


def chunks(text: str) -> list[Chunk]:
    """The text's chunks."""
    return [Chunk(told, start_line=start, end_line=end) for told, start, end in windows(text)]
