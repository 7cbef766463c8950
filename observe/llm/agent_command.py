"""Provider that runs the user's own coding agent without its user interface, such as `claude -p`.

The agent gets the prompt on standard input and runs in an empty folder. It may write a transcript. Palaver recognises
this transcript as its own by the prompt and the folder. The environment variable `OWN_RUN` disables Palaver's hooks
and server within the agent. Agents have no tools here: the prompt describes them, and the model replies with one JSON
object, either its answer or the calls that Palaver should make for it.

The output yields the answer, the used tokens, and an error. Formats: `claude -p --output-format json` (2.1.197),
events of `codex exec --json` (0.169.0), and `gemini --output-format json` (0.61.0). Any other output is the answer
itself. The arguments are documented for these agents and were checked with these versions by recording the requests
at a local server. No request contained a tool.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from json import JSONDecoder
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, Any, Final, cast

import orjson
from msgspec import Struct, json
from msgspec.structs import replace

from ...core.home import OWN_FOLDER, OWN_PROMPT_MARK, OWN_RUN
from ...core.reports import Usage
from ...core.text import readable
from .model_servers import BYTES_MAX, KEYS, OWN_KEY, too_large
from .provider import (
    CALLS_MAX,
    TIMEOUT,
    Answer,
    Message,
    ModelBusy,
    ModelMessage,
    ModelRefused,
    ModelRequest,
    Provider,
    ReplyInvalid,
    ReplyModel,
    RequestRefused,
    ToolCall,
    ToolOutputs,
    ToolRequest,
    ToolTurn,
    UserMessage,
    parse_reply,
    schema_of,
)

_VALUES_MAX: Final = 10_000
"""Maximum number of JSON values that are read from an output."""

_Fields = Mapping[str, Any]
_TOOLS: Final = (
    "You have no tool of your own. Palaver runs the tools below for you, once for each entry of `calls`, and shows the "
    f"results in the next prompt. Write at most {CALLS_MAX} calls. "
    'Example: {"calls": [{"tool": "search", "arguments": {"query": "cache"}}], '
    '"answer": ""}. When you know enough, leave `calls` empty and write the whole answer, in Markdown, to `answer`.'
)
_LAST: Final = "No further call is possible. Leave `calls` empty and write the whole answer, in Markdown, to `answer`."
_NESTED: Final = frozenset({"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"})
"""Environment variables that are removed, because an agent that finds them refuses to start inside another session."""
_KEYS: Final = frozenset({*KEYS.values(), OWN_KEY})
"""Environment variables that are not passed to the agent, so that the user's subscription pays for its calls."""
_MESSAGE_MAX: Final = 300
"""Maximum characters of an agent's error message that an error quotes."""
_STEP: Final = 0.1
"""Seconds between two checks of a running agent."""
_ONLY_JSON: Final = (
    "Do not use any tool. Reply with one JSON object that is valid under this JSON schema, and nothing else:"
)
NO_TOOLS: Final = """\
# Written by `palaver observe --setup`: Gemini CLI may use no tool when Palaver starts it.
[[rule]]
toolName = "*"
decision = "deny"
priority = 999
"""
"""Content of a policy file for `gemini --admin-policy` that forbids all tools."""
_CLAUDE: Final = (
    *("claude", "-p", "--output-format", "json", "--model", "haiku", "--no-session-persistence"),
    # `--tools ""` keeps the tools of MCP servers, which the next option turns off.
    *("--tools", "", "--strict-mcp-config"),
    # This prompt replaces the agent's own 25 kB about tools. It also avoids up to 32,000 tokens of thinking.
    *("--system-prompt", "You extract notes from conversations.", "--settings", '{"alwaysThinkingEnabled": false}'),
)
_CODEX: Final = (
    *("codex", "exec", "--json", "--ephemeral", "--skip-git-repo-check", "--ignore-user-config", "--ignore-rules"),
    *("--sandbox", "read-only", "--disable", "shell_tool", "--disable", "unified_exec"),
    *("--config", 'web_search="disabled"', "--config", 'model_reasoning_effort="low"', "-"),
)
_GEMINI: Final = ("gemini", "--output-format", "json", "--model", "flash", "--skip-trust", "--admin-policy")


class AgentOutput(Struct):
    """Answer of an agent. `usage` is None if the agent did not state it. `error` is empty if there was none."""

    text: str
    usage: Usage | None = None
    error: str = ""


def read_output(output: str) -> AgentOutput:
    """Return the answer in the output of an agent. Text before and between JSON values is ignored."""
    answer: AgentOutput | None = None
    for value in _objects(output):
        answer = _read(value, answer)
    return answer or AgentOutput(output)


def _read(value: _Fields, before: AgentOutput | None) -> AgentOutput | None:
    """Return the answer, updated with one more JSON object of the output."""
    kind = value.get("type")
    if kind == "result" and "is_error" in value:
        text = _text(value.get("result"))
        error = (text or _text(value.get("subtype")) or "error") if value["is_error"] else ""
        return AgentOutput(text, _claude_usage(_fields(value.get("usage"))), error)
    if isinstance(kind, str) and kind in {"thread.started", "turn.started", "turn.completed", "turn.failed", "error"}:
        return _codex_turn(kind, value, before or AgentOutput(""))
    if kind == "item.completed":
        item = _fields(value.get("item"))
        if item.get("type") == "agent_message":
            return AgentOutput(_text(item.get("text")), before.usage if before else None)
        return before
    if "response" in value and ("stats" in value or "session_id" in value):
        return AgentOutput(_text(value["response"]), _gemini_usage(_fields(value.get("stats"))))
    if isinstance(value.get("error"), dict) and ("session_id" in value or "stats" in value or len(value) == 1):
        return AgentOutput("", None, _text(_fields(value["error"]).get("message")) or "error")
    return before


def _codex_turn(kind: str, value: _Fields, answer: AgentOutput) -> AgentOutput:
    if kind == "turn.completed":
        used = _fields(value.get("usage"))
        cached = _number(used, "cached_input_tokens")
        # A reconnection is reported as an error, but the turn continues.
        usage = Usage(_number(used, "input_tokens") - cached, 0, cached, _number(used, "output_tokens"))
        return AgentOutput(answer.text, usage)
    if kind in {"turn.failed", "error"}:
        inner = _fields(value.get("error")) or value
        return AgentOutput(answer.text, answer.usage, _text(inner.get("message")) or "error")
    return answer


def _claude_usage(used: _Fields) -> Usage:
    return Usage(
        _number(used, "input_tokens"),
        _number(used, "cache_creation_input_tokens"),
        _number(used, "cache_read_input_tokens"),
        _number(used, "output_tokens"),
    )


def _gemini_usage(stats: _Fields) -> Usage:
    read = cached = written = 0
    for model in _fields(stats.get("models")).values():
        tokens = _fields(_fields(model).get("tokens"))
        cached += _number(tokens, "cached")
        read += _number(tokens, "prompt") - _number(tokens, "cached")
        written += _number(tokens, "candidates") + _number(tokens, "thoughts")
    return Usage(read, 0, cached, written)


def _objects(output: str) -> Iterator[_Fields]:
    """Yield each JSON object at the start of a line, and each object of a JSON list at the start of a line."""
    decoder, start = JSONDecoder(), 0
    for _ in range(_VALUES_MAX):
        while start < len(output) and output[start] not in "{[":
            line = output.find("\n", start)
            start = len(output) if line < 0 else line + 1
        if start >= len(output):
            return
        try:
            value, start = decoder.raw_decode(output, start)
        except (ValueError, RecursionError):  # not JSON, or too many digits or levels
            start += 1
            continue
        for item in cast("list[object]", value) if isinstance(value, list) else [cast("object", value)]:
            if isinstance(item, dict):
                yield cast("_Fields", item)


def _fields(value: object) -> _Fields:
    return cast("_Fields", value) if isinstance(value, dict) else {}


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _number(fields: _Fields, name: str) -> int:
    value = fields.get(name)
    return value if isinstance(value, int) else 0


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
    reply = parse_reply(answer.text, _Reply, answer.raw)
    calls = [] if request.last else reply.calls
    if not calls and not reply.answer.strip():
        raise ReplyInvalid("the reply has neither calls nor an answer", answer.raw)
    tool_calls = tuple(ToolCall.of(f"call_{index}", call.tool, call.arguments) for index, call in enumerate(calls))
    return ToolTurn("" if calls else reply.answer, tool_calls, answer.truncated, answer.usage, reply.model_dump_json())


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
            results = [
                f"Result of {output.id}{' (failed)' if output.failed else ''}:\n{output.text}" for output in outputs
            ]
            return "\n\n".join(filter(None, [*results, note]))


class AgentCommand:
    """Coding agent that is started once for each request. The agent's own account pays for the calls."""

    def __init__(self, words: Sequence[str], seconds: float = TIMEOUT) -> None:
        self._words, self._seconds = list(words), seconds

    def ask(self, request: ModelRequest) -> Answer:
        """Return the reply to one request.

        Raises:
            ModelRefused: The program cannot be started.
            ModelBusy: The program did not end within the time limit, or wrote too much.
            RequestRefused: The program reported an error.
        """
        with TemporaryDirectory(prefix=OWN_FOLDER, ignore_cleanup_errors=True) as folder:
            status, output, errors = self._run(_prompt(request), folder)
        text = output.decode("utf-8", "replace")
        answer = read_output(text)
        if status or answer.error:
            reason = answer.error or _reason(errors.decode("utf-8", "replace")) or text
            reason = " ".join(readable(reason).split())[-_MESSAGE_MAX:]
            raise RequestRefused(f"{self._words[0]} ended with status {status}: {reason}", maybe_charged=True)
        return Answer(answer.text, "", answer.usage or Usage(), text)

    def converse(self, request: ToolRequest) -> ToolTurn:
        """Return the agent's next message in a conversation with tools, which Palaver runs.

        Raises the errors of `ask`.
        """
        return converse_in_json(self, request)

    def close(self) -> None:
        """Do nothing: each request has its own process."""

    def _run(self, prompt: str, folder: str) -> tuple[int, bytes, bytes]:
        """Run the program in its own process group. Return the exit status, standard output and standard error."""
        environment = {name: value for name, value in os.environ.items() if name not in _NESTED | _KEYS}
        program = Path(self._words[0])
        if program.is_absolute():
            # An installed agent needs its interpreter, such as node, which is not on the PATH of a service.
            environment["PATH"] = f"{program.parent}{os.pathsep}{environment.get('PATH', os.defpath)}"
        # Use files instead of pipes. A pipe stays open while a process that the agent left behind keeps it open.
        with TemporaryFile() as question, TemporaryFile() as output, TemporaryFile() as errors:
            question.write(prompt.encode("utf-8", "replace"))
            question.seek(0)
            with self._start(folder, environment, question, output, errors) as process:
                try:
                    self._wait(process, output, errors)
                finally:
                    # Stop the agent also after Ctrl-C, and stop programs that it left behind.
                    with suppress(ProcessLookupError, PermissionError):
                        os.killpg(process.pid, signal.SIGKILL)
            return process.returncode, _content(output), _content(errors)

    def _start(self, folder: str, environment: Mapping[str, str], *files: IO[bytes]) -> "subprocess.Popen[bytes]":
        """Start the program, with these files as standard input, output and error."""
        question, output, errors = files
        try:
            return subprocess.Popen(
                self._words,
                cwd=folder,
                env={**environment, OWN_RUN: "1"},
                stdin=question,
                stdout=output,
                stderr=errors,
                process_group=0,
            )
        except (OSError, ValueError) as error:
            hint = "Check llm_command in config.toml, or run `palaver observe --setup`."
            raise ModelRefused(f"{self._words[0]} cannot be started: {error}", 0, hint=hint) from None

    def _wait(self, process: "subprocess.Popen[bytes]", *files: IO[bytes]) -> None:
        """Wait until the program ends. Raise `ModelBusy` if it takes too long or writes too much to the files."""
        end, ended = time.monotonic() + self._seconds, False
        while not ended:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_STEP)
                ended = True
            if any(os.fstat(file.fileno()).st_size > BYTES_MAX for file in files):
                raise too_large(f"the output of {self._words[0]}")
            if not ended and time.monotonic() > end:
                message = f"{self._words[0]} did not end within {self._seconds:g} s"
                raise ModelBusy(message, maybe_charged=True)


def _content(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _reason(errors: str) -> str:
    """Return the message in standard error. Gemini CLI writes it as JSON."""
    return read_output(errors).error or errors


def _prompt(request: ModelRequest) -> str:
    schema = orjson.dumps(request.schema).decode()
    prompt = f"{request.system}\n\n{request.text}\n\n{_ONLY_JSON}\n{schema}\n"
    return prompt if prompt.startswith(OWN_PROMPT_MARK) else f"{OWN_PROMPT_MARK}\n{prompt}"


class KnownAgent(Struct, frozen=True):
    """Coding agent and the command that runs it without its user interface."""

    name: str
    command: tuple[str, ...]
    needs_policy: bool = False


def known_agents(policy: Path) -> Sequence[KnownAgent]:
    """Return the known agents. `policy` is the path of a file with `NO_TOOLS`."""
    return (
        KnownAgent("Claude Code", _CLAUDE),
        KnownAgent("Codex CLI", _CODEX),
        KnownAgent("Gemini CLI", (*_GEMINI, str(policy)), needs_policy=True),
    )


def installed_agents(policy: Path) -> list[KnownAgent]:
    """Return the known agents whose program is on PATH, with its full path, because a service has another PATH."""
    programs = [(agent, which(agent.command[0])) for agent in known_agents(policy)]
    return [replace(agent, command=(path, *agent.command[1:])) for agent, path in programs if path]
