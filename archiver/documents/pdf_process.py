"""Program that parses a PDF from standard input and prints a JSON list of pages or, on failure, the reason.

It is started by its file path and imports no Palaver modules, so it starts fast.
"""

import json
import logging
import resource
import sys
from contextlib import suppress
from io import BytesIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pypdf import PdfReader

_MEMORY: Final = 1 << 30
_SECONDS: Final = 20
_PAGES: Final = 2_000
_CHARACTERS: Final = 5_000_000
_DAMAGED, _TOO_LARGE = "the file is damaged or not a PDF", "parsing takes too much time or memory"


def texts(data: bytes) -> list[str] | str:
    """Return the text of each page within the limits, or the reason for a failure."""
    from pypdf import PdfReader

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return "the file is encrypted"
        count = min(len(reader.pages), _PAGES)
    except MemoryError:
        return _TOO_LARGE
    except Exception:  # noqa: BLE001 - a damaged file may cause any error
        return _DAMAGED
    return _pages(reader, count)


def _pages(reader: "PdfReader", count: int) -> list[str] | str:
    """Return the text of each page. The text of an unreadable page is empty."""
    found: list[str] = []
    left, failed = _CHARACTERS, False
    for number in range(count):
        try:
            text = reader.pages[number].extract_text()
        except MemoryError:
            return _TOO_LARGE
        except Exception:  # noqa: BLE001 - a damaged page may cause any error
            text, failed = "", True
        found.append(text[:left])
        left -= len(found[-1])
        if not left:
            break
    if any(page.strip() for page in found):
        return found
    return _DAMAGED if failed else "the file contains no text"


def _set_limits() -> None:
    # Some systems define a memory limit but refuse to set it.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _set_limits()
    logging.disable()
    sys.stdout.write(json.dumps(texts(sys.stdin.buffer.read())))
