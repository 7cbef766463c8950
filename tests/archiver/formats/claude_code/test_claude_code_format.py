"""Locations and recognition of Claude Code transcripts, and complete reading of real ones."""

import os
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.archiver.formats.claude_code import ClaudeCode
from palaver.archiver.formats.registry import recognise
from palaver.archiver.lines import HEAD_BYTES, split, trim
from palaver.core.conversation import Fact, Session, SessionKind, Skipped, Turn

from ....cases import for_each
from ....shared import SAMPLES
from .claude_lines import PROMPT, SESSION, assistant, jsonl, notes, read, text, user


def test_a_file_is_recognised_by_its_content() -> None:
    """A file is recognised by any of the usual first lines. Files of other agents are not recognised."""
    ours: list[dict[str, Any]] = [
        {"type": "last-prompt", "sessionId": SESSION},
        {"type": "file-history-snapshot", "messageId": "m", "snapshot": {}},
        {"type": "summary", "summary": "s", "leafUuid": "l"},
        user("go", sessionId=SESSION),
        assistant(text("ok"), uuid="u"),
    ]
    others: list[dict[str, Any]] = [
        {"type": "session_meta", "payload": {"id": "x", "cwd": "/a"}},
        {"type": "user", "uuid": "u", "parentUuid": None, "message": {"role": "user", "parts": []}},
        {"type": "message", "id": "m", "parentId": None, "message": {"role": "user", "content": []}},
        {"role": "user", "message": {"content": []}},
        {},
    ]
    assert all(isinstance(recognise(b"\n" + jsonl([known])), ClaudeCode) for known in ours)
    assert not any(isinstance(recognise(jsonl([unknown])), ClaudeCode) for unknown in others)
    assert recognise(b"") is None
    assert recognise(b"\xff\xfe\0not a transcript") is None


def test_a_session_is_identified_by_its_file_name_or_its_records() -> None:
    """A file name that is a session ID takes precedence over the records."""
    head = jsonl([user("go", sessionId=SESSION)])
    other = "0d9f1c1e-0000-4000-8000-000000000009"

    assert ClaudeCode().identify(Path(f"/p/{other}.jsonl"), head) == Session("claude-code", other)
    assert ClaudeCode().identify(Path("/p/export.jsonl"), head).native_id == SESSION
    assert ClaudeCode().identify(Path("/p/export.jsonl"), b"").native_id == "export"


def test_a_sub_agent_belongs_to_its_parent() -> None:
    """The folder or the records identify the parent of a sub-agent."""
    line = jsonl([user("task", sessionId=SESSION, isSidechain=True, agentId="1a2b3c4d")])
    parent = "0d9f1c1e-0000-4000-8000-000000000009"

    def identify(path: str) -> tuple[str, SessionKind, str]:
        found = ClaudeCode().identify(Path(path), line)
        return found.native_id, found.kind, found.parent_id

    agent = SessionKind.SUBAGENT
    assert identify("/p/agent-1a2b3c4d.jsonl") == ("agent-1a2b3c4d", agent, SESSION)
    assert identify("/p/copied.jsonl") == ("agent-1a2b3c4d", agent, SESSION)
    assert identify(f"/p/{parent}/subagents/agent-9.jsonl") == ("agent-9", agent, parent)
    assert identify("/home/subagents/p/agent-9.jsonl") == ("agent-9", agent, SESSION)
    assert identify(f"/p/{parent}/subagents/workflows/wf_1/agent-9.jsonl") == ("agent-9", agent, parent)


def test_the_records_of_a_sub_agent_name_its_parent() -> None:
    """The session ID in a sub-agent's records is the ID of its parent."""
    other = "0d9f1c1e-0000-4000-8000-000000000009"
    events = read(user("task", sessionId=other, agentId="a1"), kind=SessionKind.SUBAGENT)

    assert notes(events, Fact.PARENT) == [(1, other)]
    assert notes(events, Fact.AGENT_ID) == [(1, "a1")]
    assert notes(events, Fact.SESSION) == []


def make(root: Path, *names: str) -> None:
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")


def test_the_folders_of_all_versions_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The configured folder and both default folders are found if they exist."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "elsewhere"))
    assert ClaudeCode().roots() == []

    make(tmp_path, "elsewhere/projects/x", ".config/claude/projects/x")
    assert ClaudeCode().roots() == [tmp_path / "elsewhere" / "projects", tmp_path / ".config" / "claude" / "projects"]

    (tmp_path / ".claude").symlink_to(tmp_path / "elsewhere")
    assert len(ClaudeCode().roots()) == 2


def test_other_files_are_not_transcripts(tmp_path: Path) -> None:
    """Tool output, notes and logs beside sessions and sub-agents are not transcripts."""
    wanted = [
        "-a/agent-1a2b3c4d.jsonl",
        f"-a/{SESSION}.jsonl",
        f"-a/{SESSION}/subagents/agent-1.jsonl",
        f"-a/{SESSION}/subagents/workflows/wf_1/agent-2.jsonl",
        "-b/loose.jsonl",
    ]
    make(tmp_path, *wanted, f"-a/{SESSION}/tool-results/x.jsonl", "-a/memory/m.jsonl", "history.jsonl", "-b/n.txt")
    make(tmp_path, f"-a/{SESSION}/subagents/workflows/wf_1/journal.jsonl", f"-a/{SESSION}/subagents/agent-1.meta.json")

    found = [path.relative_to(tmp_path).as_posix() for path in ClaudeCode().transcripts(tmp_path)]
    assert sorted(found) == sorted(wanted)
    assert found == [path.relative_to(tmp_path).as_posix() for path in ClaudeCode().transcripts(tmp_path)]
    assert list(ClaudeCode().transcripts(tmp_path / wanted[0])) == [tmp_path / wanted[0]]


def test_a_damaged_folder_does_not_hide_the_others(tmp_path: Path) -> None:
    """Link loops, dangling links and unusual names are skipped."""
    make(tmp_path, "-a/one.jsonl", "-b/two.jsonl")
    (tmp_path / "-a" / "loop").symlink_to(tmp_path)
    (tmp_path / "-a" / "dangling.jsonl").symlink_to(tmp_path / "nowhere")
    (tmp_path / "-b" / os.fsdecode(b"caf\xe9.jsonl")).write_bytes(b"")

    found = [path.name.encode("utf-8", "replace") for path in ClaudeCode().transcripts(tmp_path)]
    assert sorted(found) == [b"caf?.jsonl", b"one.jsonl", b"two.jsonl"]
    assert list(ClaudeCode().transcripts(tmp_path / "gone")) == []


def test_an_unreadable_folder_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """An unreadable folder is logged, and the other folders are searched."""
    make(tmp_path, "-a/one.jsonl", "-b/two.jsonl")
    whole = os.scandir

    def scandir(path: Path) -> object:
        if path.name == "-a":
            raise PermissionError(13, "Permission denied")
        return whole(path)

    monkeypatch.setattr(os, "scandir", scandir)

    assert [path.name for path in ClaudeCode().transcripts(tmp_path)] == ["two.jsonl"]
    assert "Permission denied" in caplog.text


@for_each(
    "path, root, expected",
    [
        ("/h/.claude/projects/-a/s.jsonl", "/h/.claude/projects", "-a/s.jsonl"),
        ("/h/.claude/projects/-a/s.jsonl", "/h/.claude", "-a/s.jsonl"),
        ("/h/.claude/projects/-a/s.jsonl", "/h", "-a/s.jsonl"),
        ("/h/projects/-a/s/subagents/agent-1.jsonl", "/h/projects", "-a/s/subagents/agent-1.jsonl"),
        ("/x/exports/s.jsonl", "/x/exports", "exports/s.jsonl"),
        ("/x/exports/deep/er/s.jsonl", "/x/exports", "deep/er/s.jsonl"),
        ("/x/s.jsonl", "/x/s.jsonl", "x/s.jsonl"),
        ("/y/s.jsonl", "/x", "y/s.jsonl"),
        (os.fsdecode(b"/x/caf\xe9/a b.jsonl"), "/x", "caf%E9/a b.jsonl"),
        ("/x/a:b\\c/s\n.jsonl", "/x", "a%3Ab%5Cc/s%0A.jsonl"),
        ("/x/../../etc/s.jsonl", "/x", "%2E%2E/%2E%2E/etc/s.jsonl"),
    ],
)
def test_archive_names_are_safe(path: str, root: str, expected: str) -> None:
    """An archive name contains the project folder and the session, in characters safe for every file system."""
    assert ClaudeCode().archive_name(Path(path), Path(root)) == expected


@given(st.lists(st.text(min_size=1).filter(lambda part: "/" not in part and "\0" not in part), min_size=1, max_size=4))
def test_no_name_leads_out_of_the_archive(parts: list[str]) -> None:
    """No path component is empty, a dot or absolute, and the name can be encoded as UTF-8."""
    name = ClaudeCode().archive_name(Path("/root", *parts, "s.jsonl"), Path("/root"))

    assert name.encode()
    assert not {"", ".", ".."} & set(name.split("/"))
    assert "\\" not in name


def samples() -> list[Path]:
    return sorted(path for path in SAMPLES.rglob("*.jsonl") if "codex" not in path.parts) if SAMPLES.exists() else []


@pytest.mark.skipif(not SAMPLES.exists(), reason="needs the shared samples")
def test_real_transcripts_are_read_completely() -> None:
    """Every line of a real transcript is accounted for, the text is clean, and few records are unknown."""
    unknown = lines = prompts = 0
    for path in random.Random(7).sample(samples(), 40):
        with path.open("rb") as file:
            head = file.read(HEAD_BYTES)
            known = recognise(head)
            if not isinstance(known, ClaudeCode):
                continue
            file.seek(0)
            read_lines = list(split(file))
            events = list(known.reader(known.identify(path, head)).read(read_lines))
        lines += len(read_lines)
        passed = [event.line for event in events if isinstance(event, Skipped)]
        recorded = {event.line for event in events if not isinstance(event, Skipped)}
        assert sorted({*passed, *recorded}) == [line.number for line in read_lines], path
        unknown += sum(isinstance(event, Skipped) and event.reason.startswith("unknown") for event in events)
        prompts += sum(isinstance(event, Turn) and event.kind is PROMPT for event in events)
        texts = [trim(event.text) for event in events if isinstance(event, Turn)]
        assert all("\0" not in text and "\x1b[" not in text for text in texts)

    assert lines > 1000
    assert prompts > 20
    assert unknown < lines / 100


@pytest.mark.skipif(not SAMPLES.exists(), reason="needs the shared samples")
def test_no_sample_of_another_agent_is_recognised() -> None:
    """Samples of other agents are not recognised as transcripts of Claude Code."""
    for path in SAMPLES.rglob("*.jsonl"):
        with path.open("rb") as file:
            claimed = isinstance(recognise(file.read(HEAD_BYTES)), ClaudeCode)
        place = path.relative_to(SAMPLES).as_posix()
        foreign = ("/codex", "/copilot/", "/qwen/", "/grok/", "/kimi/", "/droid/", "/pi", "/openclaw/", "/cursor/")
        if any(name in place for name in foreign):
            assert not claimed, place
        if "/claude-code/" in place and "__" in place:
            assert claimed, place
