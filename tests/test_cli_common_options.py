"""Tests for cli/common_options.py: days are local in all commands and in the MCP server."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from palaver.agents.conversation_tools import CONVERSATION, ConversationContext
from palaver.agents.fabric import FABRIC
from palaver.archiver.ingest.transcripts import in_paths
from palaver.cli import main
from palaver.core.config import write_settings
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.templates.render import Renderer

from .commands import LEAVES

LOCAL, UTC_DAY = "2026-05-05", "2026-05-04"
"""Day of the only prompt in Seoul, where it was 05:30, and in UTC, where it was 20:30."""


@pytest.fixture(autouse=True)
def seoul(home: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    """Archive one prompt of 2026-05-04T20:30Z, and change the time zone of the system to that of Seoul."""
    monkeypatch.setenv("TZ", "Asia/Seoul")
    time.tzset()
    said = {"sessionId": "4a1b0000-0000-4000-8000-000000000001", "cwd": "/code/quay", "version": "2.1.0"}
    prompt = {"type": "user", "message": {"role": "user", "content": "Moor the heron barge"}, "uuid": "1"}
    reply = {
        "type": "assistant",
        "message": {
            "role": "assistant",
            "content": [{"type": "text", "text": "Moored the barge at pier 4, because pier 2 is silted."}],
        },
    }
    records = [
        {**said, **prompt, "timestamp": "2026-05-04T20:30:00.000Z"},
        {**said, **reply, "uuid": "2", "parentUuid": "1", "timestamp": "2026-05-04T20:31:00.000Z"},
    ]
    file = home / ".claude" / "projects" / "-work-quay" / "4a1b0000-0000-4000-8000-000000000001.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"{json.dumps(record)}\n" for record in records))
    archive = Home.find()
    with Pipeline(archive) as pipeline:
        pipeline.run(in_paths([file]))
    return archive


def palaver(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def answer(*arguments: str) -> Any:
    return json.loads(palaver(*arguments, "--json"))


def test_pages_show_local_days() -> None:
    """Every page with the date of the prompt shows the local day, and with --utc the day in UTC."""
    pages = {
        ("sessions",): "2026-05-05 05:3",
        ("projects",): LOCAL,
        ("search", "heron"): LOCAL,
        ("search", "--project", "quay"): LOCAL,
        ("show", "4a1b"): "2026-05-05 05:3",
        ("read", "4a1b"): "2026-05-05 05:30",
        ("timeline", "4a1b"): "2026-05-05 05:30",
        ("context", "--project", "quay"): LOCAL,
        ("ask", "where was the heron barge moored"): LOCAL,
    }
    wrong = list[str]()
    for words, shown in pages.items():
        local, universal = palaver(*words), palaver(*words, "--utc")
        if shown not in local or UTC_DAY in local or UTC_DAY not in universal or LOCAL in universal:
            wrong.append(" ".join(words))
    assert wrong == []


def test_date_filters_are_local_days() -> None:
    """A date filter means a local day, and with --utc, anywhere among the arguments, a day in UTC."""
    for words in (("sessions",), ("search", "heron")):
        name = "sessions" if words == ("sessions",) else "results"
        assert len(answer(*words, "--after", LOCAL)[name]) == 1
        assert answer(*words, "--before", UTC_DAY)[name] == []
        assert answer(*words, "--after", LOCAL, "--utc")[name] == []
        assert len(answer("--utc", *words, "--before", UTC_DAY)[name]) == 1


def test_dates_in_a_question_are_local_days() -> None:
    """A date in the words of a query is a local day."""
    dated = ("search", "heron barge on 5 may 2026")
    assert "Nothing from" not in palaver(*dated)
    assert "Nothing from `on 5 may 2026` (2026-05-05)" in palaver(*dated, "--utc")


def test_json_has_instants_in_utc_and_the_local_day() -> None:
    """Instants are in UTC in every time zone. `date` is the day that finds the entry with a date filter."""
    for option, day in ((), LOCAL), (("--utc",), UTC_DAY):
        [hit] = answer("search", "heron", *option)["results"]
        assert (hit["at"], hit["date"]) == ("2026-05-04T20:30:00Z", day)
        assert answer("sessions", *option)["sessions"][0]["started"] == "2026-05-04T20:30:00Z"
        assert answer("projects", *option)["projects"][0]["last"] == "2026-05-04T20:31:00Z"


def test_a_setting_selects_the_time_zone(seoul: Home) -> None:
    """`timezone` in the settings replaces the time zone of the system, and --utc replaces both."""
    for name, shown in {"UTC": "2026-05-04 20:31", "Asia/Kathmandu": "2026-05-05 02:16"}.items():
        write_settings(seoul.config, {"timezone": name})
        assert shown in palaver("sessions")
        assert "2026-05-04 20:31" in palaver("sessions", "--utc")


def test_an_unknown_zone_in_the_settings_is_an_error(seoul: Home) -> None:
    """The error names the setting and a valid value."""
    write_settings(seoul.config, {"timezone": "Mars/Olympus"})
    result = CliRunner().invoke(main, ["search", "heron"])

    assert result.exit_code == 1
    assert "timezone is not UTC or an IANA name" in result.stderr
    assert 'Write timezone = "Europe/London".' in result.stderr


def test_tools_of_the_mcp_server_use_local_days(seoul: Home) -> None:
    """Parameters and pages of tools have local days. `context.orient` keeps its own time zone."""
    [search] = [tool for tool in CONVERSATION.tools if tool.name == "search"]
    with ArchiveSearch(seoul, None) as layers:
        context = ConversationContext(layers, Renderer())
        found, nothing = (
            search.call(context, {"query": "heron", "after": LOCAL, "before": LOCAL}).text,
            search.call(context, {"query": "heron", "after": UTC_DAY, "before": UTC_DAY}).text,
        )
    assert f"ex-1 {LOCAL}" in found
    assert "ex-1" not in nothing
    assert any(tool.name == "context.orient" for tool in FABRIC.tools)


def test_every_command_has_the_option() -> None:
    """`--utc` is an option of every command, so that no command is forgotten."""
    lacking = [words for words, command in LEAVES.items() if all("--utc" not in each.opts for each in command.params)]
    assert lacking == [("model",)]
