"""The registry: every format there is. Who reads one file of a known format needs none of the others."""

from itertools import islice

from ..parse.lines import head_records
from . import Container, Format
from .antigravity import Antigravity
from .chatgpt import ChatGpt
from .claude_ai import ClaudeAi
from .claude_code import ClaudeCode
from .codex import Codex
from .copilot import Copilot
from .cursor import Cursor
from .gemini import Gemini
from .kimi_cli import KimiCli
from .kimi_code import KimiCode
from .opencode import OpenCode
from .pi import Pi

_FIRST = 5
"""Records that tell the format of nearly every file; the others are decoded only where these do not."""

FORMATS: tuple[Format, ...] = (
    ClaudeCode(),
    Codex(),
    Copilot(),
    Pi(),
    Gemini(),
    Antigravity(),
    KimiCode(),
    KimiCli(),
    OpenCode(),
    Cursor(),
    ChatGpt(),
    ClaudeAi(),
)


CONTAINERS = tuple(known for known in FORMATS if isinstance(known, Container))


def by_agent(agent: str) -> Format:
    """The format of a known agent."""
    return next(known for known in FORMATS if known.agent == agent)


def recognise(head: bytes, name: str = "") -> Format | None:
    """The format of a file that begins with these bytes, judged by their content; None when no format knows it.

    Where they hold no record, because the file is empty or damaged, its name tells.
    """
    records = head_records(head)
    found = list(islice(records, _FIRST))
    if not found:
        return next((known for known in FORMATS if known.names(name)), None)
    told = next((known for known in FORMATS if known.claims(found)), None)
    if told is None:
        found += records
        told = next((known for known in FORMATS if known.claims(found)), None)
    return told
