"""The registry: every format there is. Who reads one file of a known format needs none of the others."""

from itertools import islice

from ..files.lines import head_records
from .antigravity.antigravity_format import Antigravity
from .chatgpt.chatgpt_format import ChatGpt
from .claude_ai.claude_ai_format import ClaudeAi
from .claude_code.claude_code_format import ClaudeCode
from .codex.codex_format import Codex
from .copilot.copilot_format import Copilot
from .cursor.cursor_format import Cursor
from .gemini.gemini_format import Gemini
from .kimi_cli.kimi_cli_format import KimiCli
from .kimi_code.kimi_code_format import KimiCode
from .opencode.opencode_format import OpenCode
from .pi.pi_format import Pi
from .transcript_format import ContainerFormat, TranscriptFormat

_FIRST = 5
"""Records that tell the format of nearly every file; the others are decoded only where these do not."""

FORMATS: tuple[TranscriptFormat, ...] = (
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


CONTAINERS = tuple(known for known in FORMATS if isinstance(known, ContainerFormat))


def by_agent(agent: str) -> TranscriptFormat:
    """The format of a known agent."""
    return next(known for known in FORMATS if known.agent == agent)


def recognise(head: bytes, name: str = "") -> TranscriptFormat | None:
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
