"""Loop in which a language model calls search, get_observations and read until it answers or reaches a limit.

The tools run in this process.
"""

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from hashlib import sha256
from typing import Any, Final, cast

from msgspec import Struct, json
from msgspec.structs import replace

from ...core.errors import PalaverError
from ...core.reports import Usage, many
from ...core.runtime import never
from ...core.tokens import count
from ...observe.llm.ledger import BookedCalls, CallSize
from ...observe.llm.provider import (
    CALLS_MAX,
    Backoff,
    Message,
    ModelBusy,
    ModelMessage,
    OfferedTool,
    ToolCall,
    ToolOutput,
    ToolOutputs,
    ToolProvider,
    ToolRequest,
    ToolTurn,
    UserMessage,
)
from ...templates.quote import brief
from ...templates.render import Renderer
from ..conversation_tools import CONVERSATION, ConversationContext
from .agent_definition import LoopLimits
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
        self._context = ConversationContext(index, renderer, here, find_list=index.find_list)
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

    def look_up(self, question: str, most: int, also: Sequence[str] = ()) -> tuple[ToolOutput, ...]:
        """Search for the question, and return the hits and the full text of the `most` best hits.

        `also` are other wordings of the question.

        The first request to the model contains these results.

        Raises:
            InvalidInput: The question or a filter is invalid.
        """
        first: dict[str, Any] = {"query": question}
        if also:
            first["also"] = list(also)
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


TOKENS_OUT: Final = 4_000
"""Maximum tokens of one message that the model writes."""
_EXCESS: Final = f"Not run: at most {CALLS_MAX} calls in one message"
_GROWTH: Final = 3
"""Divisor of the time limit. When less than a third of the time is left, the model must answer."""
_RESULT_BYTES: Final = 20_000
"""Expected number of bytes that the result of a search adds to the next request."""
_REFUSALS: Final = {"refusal", "content_filter"}
"""Stop reasons with which providers report that the model refused to answer."""
_ANSWER_NOW: Final = "{reason} is almost reached. Call no tool. Write your answer now, from what you found so far."

OpenProvider = Callable[[float], ToolProvider]
"""Function that opens a connection to the provider. Its argument is the timeout of a call in seconds."""


class LoopStopped(PalaverError):
    """Error: the model gave no answer within the limits, or refused to answer."""


class ModelReply(Struct, frozen=True):
    """Answer of the model. `note` states why the answer may be incomplete, or is empty."""

    text: str
    note: str = ""


class ToolLoop:
    """Loop of model calls and tool calls for one question.

    `calls` records the cost of each answered call in the ledger. `report` receives a line for each step.

    Attributes:
        used: Tokens of all model calls that were answered.
    """

    def __init__(
        self,
        calls: BookedCalls,
        open_provider: OpenProvider,
        tools: ArchiveTools,
        limits: LoopLimits,
        report: ProgressLine,
        *,
        should_stop: Callable[[], bool] = never,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._calls, self._open, self._tools, self._limits = calls, open_provider, tools, limits
        self._report, self._should_stop, self._backoff = report, should_stop, Backoff(sleep)
        self._end = time.monotonic() + limits.seconds
        self.used = 0

    def run(self, model: str, system: str, first: Sequence[Message]) -> ModelReply:
        """Return the model's answer to the first messages.

        Raises:
            LoopStopped: The model refused to answer, wrote no text, or reached a limit, or the question was cancelled.
            BudgetExhausted: A budget does not allow the next call.
            ExtractionError: The provider failed.
        """
        messages = list(first)
        for turn in itertools.count(1):
            request = ToolRequest(model, TOKENS_OUT, system, self._tools.offered, tuple(messages))
            reason = self._limit_near(turn, request)
            reply = self._ask(_last(request, reason) if reason else request)
            if reply.truncated in _REFUSALS:
                raise LoopStopped("the model refused to answer")
            if reason or not reply.calls:
                return self._finished(reply, reason)
            messages += [ModelMessage(reply.content), self._run_all(reply.calls)]
        raise AssertionError("unreachable")

    def _finished(self, reply: ToolTurn, reason: str) -> ModelReply:
        if reply.calls or not reply.text.strip():
            cause = f"{reason} was reached before the model answered" if reason else "the model returned no text"
            raise LoopStopped(cause)
        note = f"{reason} ended the search early" if reason else ""
        if reply.truncated:
            note = f"the model's answer was cut off ({reply.truncated})"
        return ModelReply(reply.text.strip(), note)

    def _run_all(self, calls: Sequence[ToolCall]) -> ToolOutputs:
        """Run the tool calls of one message, and return a result for each. Calls above `CALLS_MAX` get an error."""
        outputs = list[ToolOutput]()
        for number, call in enumerate(calls):
            self._check_stop()
            outputs.append(self._tools.run(call) if number < CALLS_MAX else ToolOutput(call.id, _EXCESS, failed=True))
        return ToolOutputs(tuple(outputs))

    def _ask(self, request: ToolRequest) -> ToolTurn:
        """Call the model. After a temporary failure, release the reserved cost and repeat the call."""
        size = CallSize(request.size(), TOKENS_OUT, sha256(json.encode(request)).hexdigest())
        if self.used + request.tokens() + TOKENS_OUT > self._limits.tokens:
            raise LoopStopped(f"the limit of {self._limits.tokens:,} tokens allows no further call")
        while True:
            self._check_stop()
            left = self._end - time.monotonic()
            if left <= 0:
                raise LoopStopped(f"the time limit of {self._limits.seconds:g} s was reached")
            try:
                with closing(self._open(left)) as provider:
                    reply = self._calls.make(size, partial(provider.converse, request))
            except ModelBusy as error:
                self._report(f"{error}")
                self._backoff.wait(error, self._end - time.monotonic())
                continue
            self._backoff.reset()
            self.used += _total(reply.usage)
            return reply

    def _limit_near(self, turn: int, request: ToolRequest) -> str:
        """Return the name of the limit that allows only one more message, or an empty text if none is near."""
        limits = self._limits
        if turn == limits.turns:
            return f"The limit of {limits.turns} turns"
        if self.used + 2 * (request.tokens() + TOKENS_OUT) > limits.tokens:
            return f"The limit of {limits.tokens:,} tokens"
        if (self._end - time.monotonic()) * _GROWTH < limits.seconds:
            return f"The time limit of {limits.seconds:g} s"
        # Both calls are reserved at their maximum cost, but the first one is settled before the second is made.
        now = self._calls.maximum_cost(CallSize(request.tokens(), TOKENS_OUT))
        answer = self._calls.maximum_cost(CallSize(request.size() + _RESULT_BYTES, TOKENS_OUT))
        return "" if self._calls.allows(now + answer, 2) else "The budget"

    def _check_stop(self) -> None:
        if self._should_stop():
            raise LoopStopped("the question was cancelled")


def _last(request: ToolRequest, reason: str) -> ToolRequest:
    """Return the request with a note that asks the model to answer now, and with tools switched off."""
    *before, last = request.messages
    note = _ANSWER_NOW.format(reason=reason)
    match last:
        case ToolOutputs():
            last = replace(last, note=note)
        case UserMessage(text):
            last = UserMessage(f"{text}\n{note}")
        case ModelMessage():
            raise AssertionError("a request ends with a message to the model")
    return replace(request, messages=(*before, last), last=True)


def _total(usage: Usage) -> int:
    return usage.tokens_in + usage.cache_written + usage.cache_read + usage.tokens_out
