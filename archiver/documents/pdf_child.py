"""The process that parses a PDF from standard input: a JSON list of pages, or of one text that says why not.

It is run by its path and imports nothing of ours, so that it starts fast and knows nothing.
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


def texts(data: bytes) -> list[str] | str:
    """The text of each page, as far as the limits reach; or why there is none."""
    from pypdf import PdfReader

    try:
        reader = PdfReader(BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            return "it is encrypted"
        count = min(len(reader.pages), _PAGES)
    except MemoryError:
        return "it takes too much time or memory to read"
    except Exception:  # noqa: BLE001 - the edge of this process; any error may come of a damaged file
        return "it is damaged, or no PDF"
    return _pages(reader, count)


def _pages(reader: "PdfReader", count: int) -> list[str] | str:
    """A page that cannot be read is empty; a file of which none can is damaged."""
    found: list[str] = []
    left, failed = _CHARACTERS, 0
    for number in range(count):
        try:
            text = reader.pages[number].extract_text()
        except MemoryError:
            return "it takes too much time or memory to read"
        except Exception:  # noqa: BLE001
            text, failed = "", failed + 1
        found.append(text[:left])
        left -= len(found[-1])
        if not left:
            break
    if any(page.strip() for page in found):
        return found
    return "it is damaged, or no PDF" if failed else "it holds no text"


def _limit() -> None:
    # Some systems know a limit and refuse to set it.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


if __name__ == "__main__":
    _limit()
    logging.disable()
    sys.stdout.write(json.dumps(texts(sys.stdin.buffer.read())))
