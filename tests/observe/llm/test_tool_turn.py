"""Conversations with tools, over each provider."""

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from palaver.core.home import OWN_PROMPT_MARK
from palaver.core.reports import Usage
from palaver.observe.llm.agent_command import AgentCommand, json_request
from palaver.observe.llm.model_servers import MessagesApi, OpenAIApi
from palaver.observe.llm.provider import (
    Backoff,
    ModelBusy,
    ModelMessage,
    ModelRefused,
    OfferedTool,
    ReplyInvalid,
    ToolCall,
    ToolOutput,
    ToolOutputs,
    ToolProvider,
    ToolRequest,
    UserMessage,
)

from .server import FakeProvider, Sent, completion_calls, failing, message, serving, tool_use
from .test_openai_api import completion

TOOLS = (OfferedTool("search", "Search.", {"type": "object", "properties": {"query": {"type": "string"}}}),)
FIRST = ToolRequest("m", 100, "Be brief.", TOOLS, (UserMessage("Why SQLite?"),))


@pytest.fixture
def server() -> Iterator[FakeProvider]:
    with serving() as server:
        yield server


def then(reply: Any, *outputs: ToolOutput, note: str = "", last: bool = False) -> ToolRequest:
    """Return the request that continues after a reply with calls."""
    messages = (*FIRST.messages, ModelMessage(reply), ToolOutputs(outputs, note))
    return ToolRequest("m", 100, "Be brief.", TOOLS, messages, last)


def test_messages_api_sends_results_after_the_calls(server: FakeProvider) -> None:
    """The model's message is sent back unchanged, and is followed by one result for each call and the note."""
    server.script = [
        Sent(body=tool_use(("search", {"query": "why"}), text="I look.")),
        Sent(body=message("SQLite.")),
    ]
    with MessagesApi("k", server.url) as api:
        turn = api.converse(FIRST)
        done = api.converse(then(turn.content, ToolOutput("toolu_0", "No.", failed=True), note="Now.", last=True))

    assert (turn.text, turn.calls, turn.truncated) == (
        "I look.",
        (ToolCall("toolu_0", "search", {"query": "why"}),),
        "",
    )
    assert (done.text, done.calls, done.usage) == ("SQLite.", (), Usage(900, 0, 1000, 200))
    first, second = server.calls
    assert (first["tool_choice"], second["tool_choice"]) == ({"type": "auto"}, {"type": "none"})
    assert first["tools"] == [{"name": "search", "description": "Search.", "input_schema": TOOLS[0].schema}]
    assert [each["role"] for each in second["messages"]] == ["user", "assistant", "user"]
    assert second["messages"][1]["content"] == turn.content
    result, note = second["messages"][2]["content"]
    assert result == {"type": "tool_result", "tool_use_id": "toolu_0", "content": "No.", "is_error": True}
    assert note == {"type": "text", "text": "Now.", "cache_control": {"type": "ephemeral"}}


def test_chat_completions_send_results_after_the_calls(server: FakeProvider) -> None:
    """Results and the note follow the assistant's message. Calls without an ID get one."""
    server.script = [
        Sent(body=completion_calls(("search", '{"query": "why"}'), ("search", "{"), ids=False)),
        Sent(body=completion("SQLite.")),
    ]
    api = OpenAIApi("", f"{server.url}/v1")
    turn = api.converse(FIRST)
    outputs = [ToolOutput(call.id, "No.") for call in turn.calls]
    done = api.converse(then(turn.content, *outputs, note="Now.", last=True))

    assert turn.calls == (ToolCall("call_0", "search", {"query": "why"}), ToolCall("call_1", "search", None))
    assert (turn.text, turn.truncated, done.text) == ("", "", "SQLite.")
    first, second = server.calls
    assert (first["tool_choice"], second["tool_choice"]) == ("auto", "none")
    assert first["tools"][0]["function"]["parameters"] == TOOLS[0].schema
    assert [each["role"] for each in second["messages"]] == ["system", "user", "assistant", "tool", "tool", "user"]
    assert [each["id"] for each in second["messages"][2]["tool_calls"]] == ["call_0", "call_1"]
    assert second["messages"][3] == {"role": "tool", "tool_call_id": "call_0", "content": "No."}


def test_usage_of_calls_is_estimated_if_the_server_states_none(server: FakeProvider) -> None:
    """A reply without token counts is charged with estimated tokens, including the arguments of calls."""
    server.script = [Sent(body=completion_calls(("search", '{"query": "why"}')) | {"usage": None})]

    usage = OpenAIApi("", f"{server.url}/v1").converse(FIRST).usage

    assert usage.tokens_in == FIRST.tokens()
    assert usage.tokens_out > 3


def test_chat_completions_report_a_refusal(server: FakeProvider) -> None:
    """A refusal of the model has the same stop reason over both APIs."""
    refused = completion("", message={"role": "assistant", "content": None, "refusal": "I cannot."})
    server.script = [Sent(body=refused), Sent(body=message("", "refusal"))]

    assert OpenAIApi("", f"{server.url}/v1").converse(FIRST).truncated == "refusal"
    with MessagesApi("k", server.url) as api:
        assert api.converse(FIRST).truncated == "refusal"


def _messages(server: FakeProvider) -> ToolProvider:
    return MessagesApi("k", server.url)


def _completions(server: FakeProvider) -> ToolProvider:
    return OpenAIApi("k", f"{server.url}/v1")


@pytest.mark.parametrize("provider", [_messages, _completions])
def test_errors_are_those_of_single_requests(
    server: FakeProvider, provider: Callable[[FakeProvider], ToolProvider]
) -> None:
    """Overload, refused keys and malformed replies raise the same errors as without tools."""
    server.script = [
        failing(529, "overloaded_error", retry_after="7"),
        failing(401, "authentication_error"),
        Sent(body=b"{}"),
    ]
    opened = provider(server)

    with pytest.raises(ModelBusy) as busy:
        opened.converse(FIRST)
    with pytest.raises(ModelRefused):
        opened.converse(FIRST)
    with pytest.raises(ReplyInvalid):
        opened.converse(FIRST)
    opened.close()
    assert busy.value.after == 7.0


def agent(folder: Path, *replies: str) -> AgentCommand:
    """Return an agent that prints one reply a run and appends each prompt to a file."""
    (folder / "replies").write_text("\0".join(replies))
    program = folder / "agent.py"
    program.write_text(
        "import pathlib, sys\n"
        f"log, replies = pathlib.Path({str(folder / 'log')!r}), pathlib.Path({str(folder / 'replies')!r})\n"
        "first, _, rest = replies.read_text().partition(chr(0))\n"
        "replies.write_text(rest)\n"
        "with log.open('a') as file:\n"
        "    file.write(sys.stdin.read() + chr(0))\n"
        "print(first)\n"
    )
    return AgentCommand((sys.executable, str(program)))


def test_an_agent_without_tools_asks_in_json(tmp_path: Path) -> None:
    """An agent gets the whole conversation in each prompt, and replies with calls or with its answer."""
    calls = {"calls": [{"tool": "search", "arguments": {"query": "why"}}], "answer": ""}
    answer: dict[str, Any] = {"calls": [], "answer": "SQLite."}
    command = agent(tmp_path, f"Sure:\n```json\n{json.dumps(calls)}\n```", json.dumps(answer))

    turn = command.converse(FIRST)
    done = command.converse(then(turn.content, ToolOutput(turn.calls[0].id, "7 hits"), note="Now.", last=True))

    assert (turn.text, turn.calls) == ("", (ToolCall("call_0", "search", {"query": "why"}),))
    assert (done.text, done.calls) == ("SQLite.", ())
    first, second, _ = (tmp_path / "log").read_text().split("\0")
    assert first.startswith(OWN_PROMPT_MARK)
    assert "Tool `search`: Search." in first
    assert "Why SQLite?" in first
    assert "Tool `search`" not in second
    assert second.index("Why SQLite?") < second.index("You replied") < second.index("7 hits") < second.index("Now.")


def test_calls_in_the_last_message_are_ignored(tmp_path: Path) -> None:
    """A call in the last message is not made, and a reply with nothing else is invalid."""
    calls: dict[str, Any] = {"calls": [{"tool": "search", "arguments": {}}], "answer": ""}
    command = agent(tmp_path, json.dumps(calls), json.dumps(calls | {"answer": "Yes."}), "I cannot help with that.")
    request = ToolRequest("m", 100, "Be brief.", TOOLS, FIRST.messages, last=True)

    with pytest.raises(ReplyInvalid):
        command.converse(request)
    assert command.converse(request).text == "Yes."
    with pytest.raises(ReplyInvalid):
        command.converse(request)


@pytest.mark.parametrize("text", ["Why?", "배포는 항상 자정에 한다. 😀" * 500])
def test_size_exceeds_the_bytes_on_the_wire(server: FakeProvider, text: str) -> None:
    """The size that is reserved exceeds the bytes that each API sends."""
    request = then(
        [{"type": "text", "text": text}], *(ToolOutput(f"toolu_{number}", text) for number in range(8)), note=text
    )
    server.default = lambda _: Sent(body=message("Yes."))
    with MessagesApi("k", server.url) as api:
        api.converse(request)
    [sent] = server.calls

    assert len(json.dumps(sent, ensure_ascii=False).encode()) < request.size()
    assert json_request(request).size() < request.size() + 3_000


def test_waits_double_and_end() -> None:
    """A wait is twice as long as before, or as long as the provider asked. The third failure in a row raises."""
    slept: list[float] = []
    backoff = Backoff(slept.append)

    backoff.wait(ModelBusy("busy"))
    backoff.wait(ModelBusy("busy", after=7.0))
    with pytest.raises(ModelBusy):
        backoff.wait(ModelBusy("busy"))
    backoff.reset()
    backoff.wait(ModelBusy("busy"))
    with pytest.raises(ModelBusy):
        backoff.wait(ModelBusy("busy"), most=3.0)

    assert slept == [2.0, 7.0, 2.0]
