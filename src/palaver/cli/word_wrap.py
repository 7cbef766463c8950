"""Line breaks between words, for text at a terminal. The terminal itself breaks long lines within words."""

import io
import re
import shutil
import unicodedata
from collections.abc import Iterator
from typing import BinaryIO, Final, TextIO, cast

STYLE: Final = re.compile(r"\x1b\[[\d;]*m")
_CONTROL: Final = re.compile(r"\r|\x1b(?!\[[\d;]*m)")
"""Pattern for text that moves the cursor, such as that of progress bars."""
_COMMAND: Final = re.compile(r"\s*(?:[A-Z_]+=\S+ )*\S*palaver ")
"""Pattern for a row that is a command. A line break in it would remain when the user copies the command."""
_PIECE: Final = re.compile(r"\s+|(?:`[^`]*`|[^\s`]|`)+")
"""Pattern for whitespace, or for a word. Text between backquotes counts as one word, because it can be a command."""
_LEAD: Final = re.compile(r"\s*(?:[-*>] |\d+[.)] )?")
_COLUMN: Final = re.compile(r"\w[\w ]{,20}?  +(?=\S)")
"""Pattern for the first column of a table."""
_ID_LEAD: Final = re.compile(r"(?:(?:obs|ex|chunk)-|(?:mem|chunk|cand)_)\w+ |[\w…/-]{4,} \d{4}-\d\d-\d\d ")
"""Pattern for the beginning of a row of a list: the ID of an entry, or a session and its date."""
_LIST_INDENT: Final = 4


def wrapped(text: str, width: int) -> str:
    """Return the text with line breaks between words, so that rows have at most `width` columns if possible.

    Further lines of a row are indented as far as its text. Words that are longer than a line stay whole.
    """
    return "\n".join(part for row in text.split("\n") for part in _wrapped_row(row, width))


def screen_width() -> int:
    """Return the number of columns of the terminal."""
    return max(shutil.get_terminal_size().columns, 20)


def wrapping(stream: TextIO) -> TextIO:
    """Return a stream that wraps text at the width of the terminal, or the stream itself if it is no terminal."""
    return cast("TextIO", _WrappedStream(stream)) if stream.isatty() else stream


def unwrapped(stream: TextIO) -> TextIO:
    """Return the stream below a wrapping stream, for text whose lines must stay whole."""
    return stream.unwrapped if isinstance(stream, _WrappedStream) else stream


class _WrappedStream(io.TextIOBase):
    """Text stream to a terminal. Bytes, such as JSON, are written to `buffer` and not wrapped."""

    def __init__(self, stream: TextIO) -> None:
        self.unwrapped = stream

    @property
    def buffer(self) -> BinaryIO:
        return self.unwrapped.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override] # typeshed declares an attribute
        return self.unwrapped.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.unwrapped.errors

    def write(self, text: str, /) -> int:
        self.unwrapped.write(text if _CONTROL.search(text) else wrapped(text, screen_width()))
        return len(text)

    def flush(self) -> None:
        self.unwrapped.flush()

    def isatty(self) -> bool:
        return self.unwrapped.isatty()

    def fileno(self) -> int:
        return self.unwrapped.fileno()


def _wrapped_row(row: str, width: int) -> Iterator[str]:
    if (len(row) <= width and row.isascii()) or _columns(row) <= width or _COMMAND.match(row):
        yield row
        return
    indent = " " * min(_indent(STYLE.sub("", row)), width // 3)
    line = ""
    for piece in _pieces(row, width - len(indent)):
        if not (_LEAD.fullmatch(line) or piece.isspace()) and _columns(line + piece) > width:
            yield line.rstrip()
            line = indent
        if not (piece.isspace() and line == indent and indent):
            line += piece
    yield line.rstrip()


def _pieces(row: str, longest: int) -> Iterator[str]:
    """Yield the words and the spaces of a row. Text between backquotes is split if it is longer than a line."""
    for piece in _PIECE.findall(row):
        yield from [piece] if _columns(piece) <= longest else re.findall(r"\s+|\S+", piece)


def _indent(row: str) -> int:
    if _ID_LEAD.match(row):
        return _LIST_INDENT
    lead = _COLUMN.match(row) or _LEAD.match(row)
    return lead.end() if lead else 0


def _columns(text: str) -> int:
    """Return the number of columns of a text at a terminal."""
    plain = STYLE.sub("", text)
    return len(plain) if plain.isascii() else sum(map(_column, plain))


def _column(character: str) -> int:
    if unicodedata.category(character) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in {"W", "F"} else 1
