"""Conversations with tool calls for a provider without support for tools, such as the user's own agent.

The prompt describes the tools and contains the whole conversation. The model replies with one JSON object: its answer,
or the calls that Palaver should make for it.
"""

from typing import Any, Final

from msgspec import json

from .model_errors import ReplyInvalid
from .model_request import ModelRequest, ReplyModel, parse_reply, schema_of
from .provider import Provider
from .tool_turn import CALLS_MAX, Message, ModelMessage, ToolCall, ToolOutputs, ToolRequest, ToolTurn, UserMessage

_TOOLS: Final = (
    "You have no tool of your own. Palaver runs the tools below for you, once for each entry of `calls`, and shows the "
    f"results in the next prompt. Write at most {CALLS_MAX} calls. "
    'Example: {"calls": [{"tool": "search", "arguments": {"query": "cache"}}], '
    '"answer": ""}. When you know enough, leave `calls` empty and write the whole answer, in Markdown, to `answer`.'
)
_LAST: Final = "No further call is possible. Leave `calls` empty and write the whole answer, in Markdown, to `answer`."


class _Wanted(ReplyModel):
    tool: str
    arguments: dict[str, Any]


class _Reply(ReplyModel):
    calls: list[_Wanted]
    answer: str


def converse_in_json(provider: Provider, request: ToolRequest) -> ToolTurn:
    """Return the next message of a model that has no tools.

    Raises:
        ReplyInvalid: The reply contains neither calls nor an answer.
        ExtractionError: The provider failed.
    """
    answer = provider.ask(json_request(request))
    try:
        reply = parse_reply(answer.text, _Reply)
    except ValueError:  # pydantic's error is one
        raise ReplyInvalid("the reply is not the JSON object that was asked for", answer.raw) from None
    calls = [] if request.last else reply.calls
    if not calls and not reply.answer.strip():
        raise ReplyInvalid("the reply has neither calls nor an answer", answer.raw)
    known = tuple(ToolCall.of(f"call_{index}", each.tool, each.arguments) for index, each in enumerate(calls))
    return ToolTurn("" if calls else reply.answer, known, answer.truncated, answer.usage, reply.model_dump_json())


def json_request(request: ToolRequest) -> ModelRequest:
    """Return a request whose prompt contains the whole conversation, and whose reply must be a JSON object."""
    tools = "" if request.last else f"{_TOOLS}\n\n{_described(request)}\n\n"
    conversation = "\n\n".join(map(_shown, request.messages))
    text = f"{tools}{conversation}{f'{chr(10)}{chr(10)}{_LAST}' if request.last else ''}"
    return ModelRequest(request.model, request.tokens_out, request.system, text, schema_of(_Reply))


def _described(request: ToolRequest) -> str:
    return "\n\n".join(
        f"Tool `{tool.name}`: {tool.description}\nJSON schema of its arguments: {json.encode(tool.schema).decode()}"
        for tool in request.tools
    )


def _shown(message: Message) -> str:
    match message:
        case UserMessage(text):
            return text
        case ModelMessage(content):
            return f"You replied: {content}"
        case ToolOutputs(outputs, note):
            results = [f"Result of {each.id}{' (failed)' if each.failed else ''}:\n{each.text}" for each in outputs]
            return "\n\n".join(filter(None, [*results, note]))
