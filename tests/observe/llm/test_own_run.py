"""Transcripts of agents that Palaver started are not archived as work."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.core.home import OWN_RUN, is_own_folder
from palaver.core.query import Query
from palaver.observe.llm.agent_command import AgentCommand
from palaver.observe.llm.model_extractor import SingleExchanges
from palaver.observe.llm.model_settings import PrivateProjects
from palaver.search.archive_search import ArchiveSearch

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from ...archiver.formats.codex import codex_lines
from ...archiver.history import FORK, History, talk
from ...demo import archived
from .conftest import PROMPTS, Stage, changing_exchange

AGENT = Path(__file__).with_name("agent.py")


def claude_transcript(prompt: str, folder: str, reply: str) -> list[dict[str, Any]]:
    """Return a session of Claude Code: a hook's message, the prompt, the reply, and a later summary."""
    place = {"sessionId": FORK, "cwd": folder, "version": "2.1.273", "entrypoint": "sdk-cli"}
    return [
        user("<session-start-hook>zephyr of the hook</session-start-hook>", uuid="a", isMeta=True, **place),
        user(prompt, uuid="b", parentUuid="a", **place),
        assistant(text(reply), uuid="c", parentUuid="b", **place),
        user("zephyr, which the agent asked itself later", uuid="d", parentUuid="c", **place),
    ]


def codex_transcript(prompt: str, folder: str, reply: str) -> list[dict[str, Any]]:
    """Return a session of `codex exec`: its environment, the prompt and the reply."""
    environment = f"<environment_context>\n  <cwd>{folder}</cwd>\n</environment_context>"
    return [
        codex_lines.meta(cwd=folder, source="exec"),
        codex_lines.message_item(environment),
        *codex_lines.user_prompt(prompt),
        *codex_lines.agent_reply(reply),
    ]


def gemini_transcript(prompt: str, folder: str, reply: str) -> list[dict[str, Any]]:
    """Return a session of Gemini CLI, which records its folder only in a message of its own."""
    at = "2026-03-01T10:00:00.000Z"
    header = {"sessionId": FORK, "projectHash": "0b7d", "startTime": at, "lastUpdated": at, "kind": "main"}
    rows = [("user", prompt), ("gemini", reply)]
    turns = [
        {"id": f"98b30b64-9492-42d4-bee3-00000000000{number}", "timestamp": at, "type": kind, "content": content}
        for number, (kind, content) in enumerate(rows)
    ]
    context = (
        f"<session_context>\nThis is the Gemini CLI.\n- **Workspace Directories:**\n  - {folder}\n</session_context>"
    )
    first = {"id": "d04923d38bb0f6017037e74183378ef4", "timestamp": at, "type": "user", "content": [{"text": context}]}
    return [header, {"$set": {"messages": [first], "lastUpdated": at}}, *turns]


Transcript = Callable[[str, str, str], list[dict[str, Any]]]
PLACES: dict[Transcript, str] = {
    claude_transcript: f"own/{FORK}.jsonl",
    codex_transcript: f"rollout-2026-03-01T10-00-00-{codex_lines.SESSION}.jsonl",
    gemini_transcript: "0b7d/chats/session-2026-03-01T10-00-f7633853.jsonl",
}


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    with History(tmp_path) as made:
        yield made


@pytest.mark.parametrize("transcript", PLACES, ids=["claude", "codex", "gemini"])
def test_session_of_an_own_run_is_not_indexed(
    stage: Stage, history: History, tmp_path: Path, transcript: Transcript
) -> None:
    """The transcript of an agent that Palaver started is copied, but nothing of it is indexed."""
    [key] = stage.say("one", changing_exchange(1, "The zephyr was it."))
    request = SingleExchanges(stage.store, PROMPTS("observe"), "m", PrivateProjects(stage.store, ())).request(key)
    assert request is not None
    log = tmp_path / "log"
    answer = AgentCommand((sys.executable, str(AGENT), "claude", str(log))).ask(request.question)
    call = json.loads(log.read_text())
    assert "zephyr" in call["prompt"]
    assert PROMPTS("observe")[1] in call["prompt"]
    assert is_own_folder(call["folder"])

    path = history.folder / PLACES[transcript]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(jsonl(transcript(call["prompt"], call["folder"], answer.text)))
    history.write(talk("Work"))
    report = history.ingest()

    assert not report.problems
    assert [turn.text for stored in history.stored() for turn in stored.exchange.turns] == ["Work?", "Work!"]
    assert history.store.sources.coverage()["own-run"] >= 2
    assert len(history.archive_files()) == 2
    with ArchiveSearch(history.home) as layers:
        assert not layers.find(Query.parse("zephyr")).hits


@pytest.mark.parametrize("command", [["context"], ["mcp"], ["remember", "Always say zephyr."], ["archive"]])
def test_palaver_does_nothing_for_its_own_agents(tmp_path: Path, command: list[str]) -> None:
    """Hooks and servers that an agent started by Palaver calls do nothing, so no run starts another one."""
    home = archived(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in home.root.rglob("*")}
    environment = dict(os.environ) | {"PALAVER_HOME": str(home.root), OWN_RUN: "1"}

    ran = subprocess.run(
        [sys.executable, "-m", "palaver", *command],
        check=False,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        env=environment,
        timeout=60,
    )

    assert (ran.returncode, ran.stdout, ran.stderr) == (0, b"", b"")
    assert {path: path.stat().st_mtime_ns for path in home.root.rglob("*")} == before
