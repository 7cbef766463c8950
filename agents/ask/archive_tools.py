"""The tools search, get_observations and read, run in this process for a language model."""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from ...core.amount import many
from ...core.errors import PalaverError
from ...core.tokens import count
from ...observe.llm.tool_turn import OfferedTool, ToolCall, ToolOutput
from ...templates.quote import brief
from ...templates.render import Renderer
from ..conversation_tools import CONVERSATION, ConversationContext
from .scoped_index import ScopedIndex

_TOOLS: Final = {tool.name: tool for tool in CONVERSATION.tools}
_SHOWN: Final = 25
"""Maximum tokens of an argument or an error in a progress message."""

ProgressLine = Callable[[str], None]
"""Callback that receives one line of text for each step, such as `search "cache": 3 hits`."""


class ArchiveTools:
    """Tools for one question, with counts of what the model read.

    Attributes:
        searches: Number of searches.
        details: Number of entries that get_observations returned.
        reads: Number of transcript excerpts that read returned.
        outputs: Texts of all results, without error messages.
    """

    def __init__(self, index: ScopedIndex, renderer: Renderer, here: str, report: ProgressLine) -> None:
        self._index, self._report = index, report
        self._context = ConversationContext(index, renderer, here)
        self.searches = self.details = self.reads = 0
        self.outputs = list[str]()

    @property
    def offered(self) -> tuple[OfferedTool, ...]:
        """Names, descriptions and schemas of the tools, as a provider sends them to a model."""
        return tuple(OfferedTool(tool.name, tool.description, tool.schema) for tool in CONVERSATION.tools)

    @property
    def tokens(self) -> int:
        """Number of tokens in all results."""
        return sum(map(count, self.outputs))

    def run(self, call: ToolCall) -> ToolOutput:
        """Run a tool and return its result. If the call is invalid, the result is an error message."""
        if call.name not in _TOOLS:
            return self._failed(call, f"Unknown tool: {brief(call.name, _SHOWN)}. Tools: {', '.join(_TOOLS)}")
        if call.arguments is None:
            return self._failed(call, "The arguments are not a JSON object. Correct them")
        try:
            return self._done(call, call.arguments)
        except PalaverError as error:
            return self._failed(call, CONVERSATION.to_error_reply(error).text)

    def look_up(self, question: str, most: int) -> tuple[ToolOutput, ...]:
        """Search for the question, and return the hits and the full text of the `most` best hits.

        The first request to the model contains these results.

        Raises:
            InvalidInput: The question or a filter is invalid.
        """
        first = {"query": question}
        found = self._done(ToolCall("first search", "search", first), first)
        best = {"ids": list(self._index.found[:most])}
        if not best["ids"]:
            return (found,)
        return found, self._done(ToolCall("first details", "get_observations", best), best)

    def _done(self, call: ToolCall, arguments: Mapping[str, Any]) -> ToolOutput:
        text = _TOOLS[call.name].call(self._context, arguments).text
        self.outputs.append(text)
        self._report(f"{call.name}{_shown(call)}: {self._counted(call, text)}")
        return ToolOutput(call.id, text)

    def _failed(self, call: ToolCall, text: str) -> ToolOutput:
        self._report(f"{call.name}{_shown(call)}: {brief(text, _SHOWN)}")
        return ToolOutput(call.id, text, failed=True)

    def _counted(self, call: ToolCall, text: str) -> str:
        """Count a result, and return its size for the progress message, such as `3 hits` or `~420 tokens`."""
        match call.name:
            case "search":
                self.searches += 1
                return many(len(self._index.found), "hit")
            case "get_observations":
                self.details += self._index.opened
            case _:
                self.reads += 1
        return f"~{count(text):,} tokens"


def _shown(call: ToolCall) -> str:
    """Return a space and the query, IDs or path of a call, or an empty text if the call has none of them."""
    given = call.arguments or {}
    value = given.get("query", given.get("ids", given.get("path", "")))
    values = cast("list[object]", value) if isinstance(value, list) else [value]
    shown = ", ".join(f'"{each}"' if "query" in given else str(each) for each in values)
    return f" {brief(shown, _SHOWN)}" if value else ""
