"""PDF, by pages. Another process parses it, with little memory and time: a parser of PDFs has no end of surprises."""

import json
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...core.document import Chunk
from ...core.errors import DocumentUnreadable
from .windows import windows

_SECONDS: Final = 60.0
_PAGE: Final = 4_000
"""Characters of a page that stay together."""
_CHILD: Final = Path(__file__).with_name("pdf_child.py")
_HINTS: Final = {
    "it is encrypted": "Save it without its password and index that.",
    "it holds no text": "It may be scanned: recognise its text first, and index that.",
}
_DAMAGED, _TOO_MUCH = "it is damaged, or no PDF", "it takes too much time or memory to read"


def texts(data: bytes, path: Path) -> list[str]:
    """The text of each page; raises `DocumentUnreadable`."""
    # In a group of its own, so that Ctrl-C reaches this process alone, which then ends it.
    command = [sys.executable, "-I", str(_CHILD)]
    try:
        ran = subprocess.run(
            command,
            input=data,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_SECONDS,
            process_group=0,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise _unreadable(path, _TOO_MUCH) from None
    if ran.returncode:
        raise _unreadable(path, _TOO_MUCH if ran.returncode in {-signal.SIGXCPU, -signal.SIGKILL} else _DAMAGED)
    told = json.loads(ran.stdout)
    if isinstance(told, str):
        raise _unreadable(path, told)
    return [str(page) for page in told]


def chunks(pages: Sequence[str]) -> list[Chunk]:
    """A chunk for each page, or several where one holds very much."""
    return [
        Chunk(window.text, page=number) for number, page in enumerate(pages, 1) for window in windows(page, size=_PAGE)
    ]


def _unreadable(path: Path, reason: str) -> DocumentUnreadable:
    return DocumentUnreadable(path, reason, hint=_HINTS.get(reason, "Open it in a viewer and save it anew."))
