"""Tests of every format with real transcripts of its agent."""

from itertools import pairwise
from pathlib import Path

import pytest

from palaver.archiver.formats import TranscriptFormat
from palaver.archiver.formats.antigravity import Antigravity
from palaver.archiver.formats.codex import Codex
from palaver.archiver.formats.copilot import Copilot
from palaver.archiver.formats.gemini import Gemini
from palaver.archiver.formats.kimi_code import KimiCode
from palaver.archiver.formats.pi import Pi
from palaver.archiver.formats.registry import recognise
from palaver.archiver.lines import HEAD_BYTES, opened
from palaver.core.conversation import Kind, Speaker

from ...shared import SAMPLES
from .reading import changed_by_resuming, exchanges, unaccounted

PLACES: tuple[tuple[TranscriptFormat, str], ...] = (
    (Codex(), "*/codex/*.jsonl"),
    (Codex(), "jazzyalex+agent-sessions/**/codex*/*.jsonl"),
    (Codex(), "jazzyalex+agent-sessions/**/codex_*.jsonl"),
    (Codex(), "wesm+agentsview/**/codex/*.jsonl"),
    (Codex(), "Sinity+polylogue/**/codex-*.jsonl"),
    (Copilot(), "*/copilot/*.jsonl"),
    (Copilot(), "jazzyalex+agent-sessions/**/copilot/**/*.jsonl"),
    (Pi(), "badlogic+pi-mono/**/*.jsonl"),
    (Pi(), "jazzyalex+agent-sessions/**/pi/*.jsonl"),
    (Gemini(), "*/gemini-cli/*.json"),
    (Gemini(), "jazzyalex+agent-sessions/**/gemini/[!s]*.json*"),
    (Gemini(), "jazzyalex+agent-sessions/**/gemini/small.json"),
    (Gemini(), "wesm+agentsview/**/gemini/*.json"),
    (Gemini(), "Sinity+polylogue/**/gemini-cli-session.json"),
    (Antigravity(), "jazzyalex+agent-sessions/**/antigravity/*.jsonl"),
    (KimiCode(), "jazzyalex+agent-sessions/**/kimi/*.jsonl"),
)
FILES = sorted({(known.agent, path): known for known, place in PLACES for path in SAMPLES.glob(place)}.items())

pytestmark = pytest.mark.skipif(not FILES, reason="no samples here")
every_file = pytest.mark.parametrize(
    ("known", "path"),
    [pytest.param(known, path, id=f"{agent}-{path.stem}") for (agent, path), known in FILES],
)

NOT_TYPED = ("<", "# AGENTS.md", "# Context from", "# Files mentioned")


def content(path: Path) -> bytes:
    """Return the lines of a file or container."""
    with opened(path) as file:
        return file.read()


@every_file
def test_a_real_transcript_is_recognised_and_every_line_accounted_for(known: TranscriptFormat, path: Path) -> None:
    """Each line of a real transcript yields events or one named reason."""
    data = content(path)
    found = recognise(data[:HEAD_BYTES])

    assert found is not None
    assert found.agent == known.agent
    assert unaccounted(known, data) == {}


@every_file
def test_prompts_of_real_transcripts_have_no_text_of_the_program(known: TranscriptFormat, path: Path) -> None:
    """No prompt is an envelope, and no prompt occurs twice in a row."""
    typed = [
        (turn.at, turn.text)
        for exchange in exchanges(known, content(path))
        for turn in exchange.turns
        if turn.kind is Kind.PROMPT and turn.speaker is Speaker.HUMAN
    ]

    assert [text for _, text in typed if text.startswith(NOT_TYPED)] == []
    assert [later for earlier, later in pairwise(typed) if later == earlier and later[0] is not None] == []


@every_file
def test_reading_a_real_transcript_may_resume_at_any_exchange(known: TranscriptFormat, path: Path) -> None:
    """Resumed reading yields the same exchanges as a full read."""
    data = content(path)

    assert changed_by_resuming(known, data[: 2 << 20]) == []


@pytest.mark.parametrize(
    ("place", "asked"),
    [
        ("EntityProcess+agentv/codex/019ed50c-2fb3__a57b22d8d4bd-0.jsonl", 6),
        ("EntityProcess+agentv/codex/019eef3d-abd1__3c162d1d8ad4-1.jsonl", 26),
        ("entireio+entire-graph/codex/019f8eab-feec__4b18f6ff334a-0.jsonl", 6),
        ("entireio+entire-graph/codex/019f9261-846e__bbef1c2a76a9-0.jsonl", 7),
        ("EntityProcess+agentv/copilot/1afc31c8-d97f__db325365b92c-0.jsonl", 1),
        ("badlogic+pi-mono/packages/coding-agent/test/fixtures/large-session.jsonl", 88),
        ("entireio+cli/gemini-cli/faff42ab-6ea5__12cbfeaa512b-0.json", 2),
        ("jazzyalex+agent-sessions/Resources/Fixtures/stage0/agents/kimi/assistant_tools.jsonl", 8),
    ],
)
def test_no_prompt_of_a_real_transcript_is_missing(place: str, asked: int) -> None:
    """The prompts were counted by hand."""
    data = content(SAMPLES / place)
    known = recognise(data[:HEAD_BYTES])

    assert known is not None
    assert sum(bool(exchange.prompt) for exchange in exchanges(known, data)) == asked
