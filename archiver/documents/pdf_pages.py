"""Text of PDF files, page by page. A separate process with memory and time limits parses the files."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...core.document import Chunk
from ...core.errors import DocumentUnreadable
from .text_windows import windows

_SECONDS: Final = 60.0
_PAGE: Final = 4_000
"""Maximum characters of a chunk. A longer page is split."""
_PROCESS: Final = Path(__file__).with_name("pdf_process.py")
_DAMAGED, _TOO_LARGE = "the file is damaged or not a PDF", "parsing takes too much time or memory"
_HINTS: Final = {
    "the file is encrypted": "Save it without a password, then index the new file.",
    "the file contains no text": "If the pages are scanned, run text recognition first.",
    _TOO_LARGE: "Split it into smaller files.",
}


def texts(data: bytes, path: Path) -> list[str]:
    """Return the text of each page. Raises `DocumentUnreadable`."""
    command = [sys.executable, "-I", str(_PROCESS)]
    try:
        # The parser has its own process group, so Ctrl-C reaches only this process, which then kills the parser.
        done = subprocess.run(
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            process_group=0,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unreadable(path, _TOO_LARGE) from None
    if done.returncode:
        raise _unreadable(path, _TOO_LARGE if done.returncode in {-signal.SIGXCPU, -signal.SIGKILL} else _DAMAGED)
    found = json.loads(done.stdout)
    if isinstance(found, str):
        raise _unreadable(path, found)
    return [str(page) for page in found]


def chunks(pages: Sequence[str]) -> list[Chunk]:
    """Return one chunk per page, or several chunks for a long page."""
    return [
        Chunk(window.text, page=number) for number, page in enumerate(pages, 1) for window in windows(page, size=_PAGE)
    ]


def _unreadable(path: Path, reason: str) -> DocumentUnreadable:
    return DocumentUnreadable(path, reason, hint=_HINTS.get(reason, "Open it in a viewer and save it again."))
