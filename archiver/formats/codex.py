"""Support for Codex.

Codex stores sessions, called rollouts, as JSON lines in `~/.codex`. It compresses rollouts with Zstandard after a week.
Rollouts with events and rollouts with a paginated history (`item_completed` events) are supported.

A rollout records a session twice: as items, which the model received or wrote, and as events, which the user saw.

- Supported: prompts, replies, reasoning summaries, tool calls with results, patches, web searches, reviews, messages
  between agents, compactions, titles, token usage, rewinds, forks.
- Not supported: encrypted reasoning, the copy of the history inside a compaction, and the program's state such as
  `world_state`.
- Tested with: versions 0.121 to 0.145, and 0.169 with the paginated history. Support for older headers is based on
  descriptions.
- Test data: `examples/codex.jsonl`, and `*/codex/*.jsonl` of entire-graph and agentv.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import orjson
from msgspec import Struct

from ...core.conversation import Fact, Kind, Note, Session, SessionKind, Turn
from ..lines import Line, Reason, Record, clean, head_records
from .json_values import (
    UNKNOWN_CALL,
    PromptLines,
    RecordedTwice,
    Repetitions,
    ToolCall,
    command_line,
    content_blocks,
    count_of,
    first_string,
    instant,
    joined_text,
    listing,
    mapping,
    mappings,
    media_label,
    string,
    total,
)
from .record_reader import FolderFormat, RecordHandler, RecordReader
from .transcript_format import (
    TAGS,
    UUID,
    RecordEvents,
    RecordStamp,
    SkipReason,
    TranscriptFormat,
    record_id,
    unknown_type,
    usage,
)

_TAG = re.compile(r"<([a-z][a-z0-9_-]*)[\s>]")
_ENVELOPES = TAGS | {"heartbeat", "permissions", "skill"}
_INSTRUCTIONS = "# AGENTS.md instructions"
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$\n?", re.MULTILINE)
_HEADING = r"^(?:# \S[^\n]*:|## (?:User )?Comment\b[^\n]*)[ \t]*$"
_COMMENT = re.compile(rf"^Comment:[ \t]*\n?(.*?)(?={_HEADING}|\Z)", re.MULTILINE | re.DOTALL)
_COMMENT_HEADING = re.compile(_HEADING, re.MULTILINE)
_REMARKS = re.compile(r"^# .*\b(?:comments|annotations|findings):", re.MULTILINE | re.IGNORECASE)
_PLACE = re.compile(r"^(File|Page URL|Lines?): *(.+?) *$", re.MULTILINE)
_PICTURE = re.compile(r"</?image(?: [^>]*)?>")
_SHELL = re.compile(
    r"<user_shell_command>\s*<command>\n?(.*?)\n?</command>\s*(?:<result>\n?(.*?)\n?</result>)?", re.DOTALL
)


def is_envelope(text: str, *, known_only: bool) -> bool:
    """Return whether Codex wrote a text: it is enclosed in tags of Codex, or contains the instructions of AGENTS.md.

    With `known_only`, only known tags count. Otherwise, any tag with an underscore counts too, because HTML tags never
    contain underscores. Set `known_only` for the text of an event, because users typed most of these texts.
    """
    text = text.strip()
    if text.startswith(_INSTRUCTIONS):
        return True
    tag = _TAG.match(text)
    if tag is None:
        return False
    closing = text[text.rfind("</") :]
    closed = closing.startswith(f"</{tag[1]}") and closing.endswith(">")
    return closed and (tag[1] in _ENVELOPES or ("_" in tag[1] and not known_only))


def request(text: str) -> str:
    """Return what the user typed, without the file list and the editor state that Codex inserted before it.

    The user typed the text below the last heading `## My request`, and the comments on lines of code above the heading.
    Remarks of an unknown form above an empty request are returned as they are, so that no prompt is lost.
    """
    requests = [*_REQUEST.finditer(text)] if text.startswith(("#", "<")) else []
    if not requests:
        return text
    above, below = text[: requests[-1].start()], text[requests[-1].end() :].strip()
    typed = "\n\n".join(filter(None, [*_comments(above), below]))
    return typed or (above.strip() if _REMARKS.search(above) else "")


def _comments(text: str) -> Iterator[str]:
    """Yield each comment that the user typed on a line of code or a web page, with the place in brackets."""
    start = 0
    for match in _COMMENT.finditer(text):
        headings = [*_COMMENT_HEADING.finditer(text, start, match.start())]
        about = text[headings[-1].end() if headings else start : match.start()]
        location = ", ".join(
            value if name in {"File", "Page URL"} else f"{name.lower()} {value}"
            for name, value in _PLACE.findall(about)
        )
        start = match.end()
        if comment := match[1].strip():
            yield f"{comment} [{location}]" if location else comment


def without_picture_tags(text: str) -> str:
    """Return a text without the tags that mark the positions of pictures."""
    return _PICTURE.sub("", text).strip()


def shell_command(text: str) -> tuple[str, str] | None:
    """Return a shell command that the user ran, with its output. Return None for other texts."""
    command = _SHELL.match(text.strip())
    return (command[1].strip(), (command[2] or "").strip()) if command else None


_HEADER = re.compile(
    r"(?:(?:Chunk ID|Wall time|Process (?:exited|running)|Original token count|Total output lines|Exit code"
    r"|Script \w+)[^\n]*\n)+(?:Output:\n?)?"
)
_CODE = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d+)[ \t]*$", re.MULTILINE)
_FAILURES = (
    "Script failed",
    "aborted",
    "apply_patch verification failed",
    "execution error",
    "exec_command failed",
    "failed to parse",
    "unsupported call",
)


class ToolOutput(Struct, frozen=True):
    """Text that a tool returned, and whether the tool failed."""

    text: str
    failed: bool = False


def output_of(output: object) -> ToolOutput:
    """Return the text of a tool's output, and whether the tool failed.

    Depending on the version of Codex, the output is text with a header, JSON with an exit code, a list of blocks, or an
    object.
    """
    details = _details(output)
    if details:
        code = mapping(details.get("metadata")).get("exit_code")
        failed = details.get("success") is False or code not in (None, 0)
        return _with_code(content_text(details.get("content")) or content_text(details.get("output")), code, failed)
    text = content_text(output)
    header = _HEADER.match(text)
    code = _CODE.search(header[0]) if header else None
    body = text[header.end() :] if header else text
    number = int(code[1]) if code else None
    return _with_code(body, number, number not in (None, 0) or text.startswith(_FAILURES))


def command_output(payload: Record) -> ToolOutput:
    """Return the output of a command from the event that ends the command."""
    printed = [string(payload.get("stdout")), string(payload.get("stderr"))]
    code = payload.get("exit_code")
    body = string(payload.get("aggregated_output")) or "\n".join(filter(None, printed))
    output = f"$ {command_line(payload.get('command'))}\n{body}"
    return _with_code(output, code, code not in (None, 0) or payload.get("status") in ("failed", "declined"))


def mcp_output(payload: Record) -> ToolOutput:
    """Return the output of an MCP tool from the event or the item that ends the call."""
    result = mapping(payload.get("result"))
    fault = content_text(result.get("Err")) or string(mapping(payload.get("error")).get("message"))
    result = mapping(result.get("Ok")) or result
    return ToolOutput(fault or clean(content_text(result.get("content"))), bool(fault) or result.get("isError") is True)


def web_results(payload: Record) -> str:
    """Return the titles and URLs of web search results."""
    results = mappings(payload.get("results"))
    return "\n".join(" ".join(filter(None, (string(each.get("title")), string(each.get("url"))))) for each in results)


def tool_search_results(payload: Record) -> str:
    """Return the names of the tools that a tool search found."""
    return "\n".join(
        ", ".join(string(tool.get("name")) for tool in [group, *mappings(group.get("tools"))])
        for group in mappings(payload.get("tools"))
    )


def search_terms(payload: Record) -> str:
    """Return the query, the text pattern and the URL of a web search. Omit missing values."""
    action = mapping(payload.get("action"))
    queries = " | ".join(string(query) for query in listing(action.get("queries")))
    asked = [string(action.get("query")) or queries, string(action.get("pattern")), string(action.get("url"))]
    return " ".join(filter(None, asked))


def review_text(output: Record) -> str:
    """Return the verdict and the findings of a review."""
    lines = [string(output.get("overall_explanation"))]
    for finding in mappings(output.get("findings")):
        path = string(mapping(finding.get("code_location")).get("absolute_file_path"))
        lines.append(f"- {string(finding.get('title'))} ({path})\n  {string(finding.get('body'))}")
    return "\n".join(filter(None, lines))


def content_text(content: object) -> str:
    """Return the text of a message or a result, with each picture replaced by its type and size."""
    return joined_text(content, _block_text)


def picture_label(address: str) -> str:
    """Return a label that replaces a picture: its type and size, or its URL."""
    kind, found, data = address.removeprefix("data:").partition(";base64,")
    return media_label(kind, data) if found else f"[{address or 'picture'}]"


def _block_text(block: Record) -> str:
    kind = string(block.get("type"))
    if kind in {"input_image", "image", "local_image"}:
        address = block.get("image_url") or block.get("url") or block.get("path")
        return picture_label(string(address)) if address else ""
    return string(block.get("text"))


def _details(output: object) -> Record:
    if isinstance(output, str) and output.startswith('{"'):
        try:
            result = mapping(orjson.loads(output))
        except orjson.JSONDecodeError:
            return {}
        return result if "output" in result and "metadata" in result else {}
    result = mapping(output)
    return result if "content" in result or "output" in result else {}


def _with_code(body: str, code: object, failed: bool) -> ToolOutput:
    body = clean(body)
    return ToolOutput(f"Exit code {code}\n{body}".strip() if code not in (None, 0) else body, failed)


_COMPACTED, _HISTORY = b'"type":"compacted"', b',"replacement_history":'
_KIND_WITHIN = 200


def headers(records: Iterable[Record]) -> Iterator[Record]:
    """Yield the session headers among records, without the outer object that newer versions of Codex add."""
    for record in records:
        if record.get("type") == "session_meta":
            yield mapping(record.get("payload"))
        elif "type" not in record and "instructions" in record:
            yield record


def parent_of(header: Record) -> str:
    """Return the ID of the session from which this session was started as a sub-agent or forked."""
    spawned = mapping(mapping(mapping(header.get("source")).get("subagent")).get("thread_spawn"))
    named = string(spawned.get("parent_thread_id")) or first_string(header, "parent_thread_id", "forked_from_id")
    # A fork with a paginated history contains only its own records, and refers to the thread that it continues.
    return named or string(mapping(header.get("history_base")).get("thread_id"))


def unwrapped(record: Record) -> tuple[str, Record]:
    """Return the type of a record, such as `response_item/message`, and its content without the outer objects."""
    kind, payload = record.get("type"), mapping(record.get("payload"))
    if "payload" not in record:
        return _bare_type(record), record
    inner = payload.get("type") or ("message" if "role" in payload else "")
    if inner == "item_completed":
        item = mapping(payload.get("item"))
        return f"item/{item.get('type')}", item
    return f"{kind}/{inner}" if kind in ("response_item", "event_msg") else str(kind), payload


def _bare_type(record: Record) -> str:
    kind = record.get("type")
    if kind is not None:
        return f"response_item/{kind}"
    if "role" in record:
        return "response_item/message"
    return "session_meta" if "instructions" in record else str(record.get("record_type"))


def without_history(line: Line) -> list[Record] | None:
    """Return a compaction record without its copy of the conversation, or None for other lines.

    These copies can make up most of a file.
    """
    if _COMPACTED not in line.data[:_KIND_WITHIN]:
        return None
    head, found, _ = line.data.partition(_HISTORY)
    try:
        return [mapping(orjson.loads(head + b"}}"))] if found else None
    except orjson.JSONDecodeError:
        return None


def call_id(payload: Record) -> str:
    """Return the ID that a call and its result share."""
    return first_string(payload, "call_id", "id")


def called_tool(payload: Record) -> str:
    """Return the tool name in a call record of any type, such as `shell` or `<server>__<tool>`."""
    name = string(payload.get("name")) or string(mapping(payload.get("function")).get("name"))
    namespace = string(payload.get("namespace"))
    if not name:
        return string(payload.get("type")).removesuffix("_call")
    return f"{namespace.rstrip('_')}__{name.lstrip('_')}" if namespace else name


def arguments(payload: Record) -> object:
    """Return the arguments of a call of any type."""
    if payload.get("type") == "web_search_call":
        return search_terms(payload)
    if payload.get("type") == "image_generation_call":
        return string(payload.get("revised_prompt"))
    return payload.get("arguments") or payload.get("input") or payload.get("action")


_REVIEW = "review_rollout"
_BOOKKEEPING = {
    *("event_msg/" + name for name in (
        "background_event", "collab_agent_interaction_end", "collab_agent_spawn_end", "collab_close_end",
        "collab_resume_end", "collab_waiting_end", "context_compacted", "dynamic_tool_call_request",
        "dynamic_tool_call_response", "guardian_assessment", "image_generation_end", "plan_update",
        "sub_agent_activity", "task_complete", "task_started", "thread_goal_updated", "thread_settings_applied",
        "turn_diff", "undo_completed", "view_image_tool_call",
    )),
    *("response_item/" + name for name in ("compaction", "context_compaction", "ghost_snapshot", "additional_tools")),
    *("item/" + name for name in (
        "CollabAgentToolCall", "ContextCompaction", "DynamicToolCall", "ImageGeneration", "ImageView", "Sleep",
        "SubAgentActivity",
    )),
    "state", "world_state", "token_usage_record", "inter_agent_communication_metadata",
}  # fmt: skip


class CodexReader(RecordReader):
    """Reader of one rollout."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._repetitions = Repetitions(self._released)
        self._copies = RecordedTwice()
        self._prompts = PromptLines()
        self._thoughts: set[str] = set()
        self._reviewing = False
        self._handlers: dict[str, RecordHandler] = {
            "session_meta": self._header,
            "turn_context": self._fact_handler({Fact.MODEL: "model", Fact.CWD: "cwd"}),
            "compacted": self._compaction,
            "response_item/message": self._message,
            "response_item/agent_message": self._agent_message,
            "response_item/reasoning": self._reasoning,
            "event_msg/user_message": self._user_event,
            "item/UserMessage": self._user_event,
            "event_msg/exec_command_end": self._command_end,
            "item/CommandExecution": self._command_end,
            "event_msg/mcp_tool_call_end": self._mcp_end,
            "item/McpToolCall": self._mcp_end,
            "event_msg/patch_apply_end": self._patch_end,
            "item/FileChange": self._patch_end,
            "item/HookPrompt": self._hook_prompt,
            "event_msg/entered_review_mode": self._review_begins,
            "event_msg/exited_review_mode": self._review_ends,
            "event_msg/thread_rolled_back": self._rolled_back,
            "event_msg/thread_name_updated": self._fact_handler({Fact.TITLE: "thread_name"}),
            "event_msg/token_count": self._usage,
            **{f"response_item/{name}": self._call for name in (
                "function_call", "custom_tool_call", "local_shell_call", "tool_search_call", "web_search_call",
                "image_generation_call",
            )},
            **{f"response_item/{name}": self._output for name in (
                "function_call_output", "custom_tool_call_output", "tool_search_output",
            )},
            **dict.fromkeys(("event_msg/agent_message", "item/AgentMessage", "item/Plan"), self._prose_event),
            **dict.fromkeys(
                ("event_msg/agent_reasoning", "event_msg/agent_reasoning_raw_content", "item/Reasoning"),
                self._thought_event,
            ),
            **dict.fromkeys(("event_msg/web_search_end", "item/WebSearch", "item/Extension"), self._web_search_end),
            **{f"event_msg/{name}": self._notice for name in ("turn_aborted", "error", "stream_error", "warning")},
        }  # fmt: skip

    def _finish(self) -> None:
        self._repetitions.settle()

    def _records(self, line: Line) -> list[Record] | Reason:
        return without_history(line) or super()._records(line)

    def _record(self, record: Record, line: Line) -> RecordEvents:
        key, payload = unwrapped(record)
        handler = self._handlers.get(key)
        if handler is None:
            return SkipReason.BOOKKEEPING if key in _BOOKKEEPING else unknown_type(key)
        own_id = record_id(first_string(payload, "id", "call_id", "client_id"), line.data)
        at = instant(record.get("timestamp") or record.get("created_at") or payload.get("timestamp"))
        return handler(payload, RecordStamp(line.number, at, f"{key}:{own_id}"))

    # The session.

    def _header(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        native_id = string(payload.get("id"))
        if native_id and native_id != self._session.native_id:
            return SkipReason.COPIED_HEADER
        facts = {
            Fact.SESSION: native_id,
            Fact.PARENT: parent_of(payload),
            Fact.VERSION: payload.get("cli_version"),
            Fact.CWD: payload.get("cwd"),
            Fact.BRANCH: mapping(payload.get("git")).get("branch"),
        }
        return self._facts.notes(stamp.line, facts) or SkipReason.REPEATED

    def _usage(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        """Return a note on the token usage of a reply.

        Codex repeats the token count whenever the rate limits change. The session's total token count serves as the ID
        of the reply, because a repeated record has the same total.
        """
        info = mapping(payload.get("info"))
        last, running = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage"))
        reply = str(count_of(running.get("total_tokens")))
        used = usage(reply, total(last, "input_tokens"), total(last, "output_tokens"))
        return self._facts.note(stamp.line, Fact.USAGE, used) or SkipReason.BOOKKEEPING

    def _compaction(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(payload.get("message"), stamp)

    def _rolled_back(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        count = count_of(payload.get("num_turns"))
        return self._prompts.take_back(stamp.line, count, partial=self._partial) or SkipReason.BOOKKEEPING

    def _notice(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        text = string(payload.get("message")) or string(mapping(payload.get("error")).get("message"))
        text = text or f"Turn aborted: {string(payload.get('reason')) or 'no reason given'}"
        return self._injected(text, stamp, failed=True) or SkipReason.EMPTY

    # Prompts.

    def _message(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        role, content = payload.get("role"), payload.get("content") or payload.get("message")
        if role == "user":
            return self._user_item(content_blocks(content), stamp)
        if role != "assistant":
            return SkipReason.CONTEXT
        text = clean(content_text(content))
        if not text:
            return SkipReason.EMPTY
        self._repetitions.register(_key("prose", text))
        if string(payload.get("id")).startswith(_REVIEW):
            self._repetitions.register(_REVIEW)
        return stamp.reply(Kind.PROSE, text)

    def _user_item(self, blocks: Sequence[Record], stamp: RecordStamp) -> RecordEvents:
        texts = [text for block in blocks if (text := without_picture_tags(clean(string(block.get("text")))))]
        typed = [text for text in texts if not is_envelope(text, known_only=False)]
        command = shell_command(texts[0]) if texts else None
        if command is not None:
            output = output_of(command[1])
            return self._user_command(command[0], output.text, stamp, tool="shell", failed=output.failed)
        if texts and not typed:
            return self._injected("\n".join(texts), stamp)
        pictures = "\n".join(filter(None, (content_text([block]) for block in blocks if "text" not in block)))
        return self._ask("item", "\n".join(typed), pictures, stamp)

    def _user_event(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        blocks = mappings(payload.get("content"))
        text = clean(string(payload.get("message")) or "\n".join(string(block.get("text")) for block in blocks))
        addresses = [*listing(payload.get("images")), *listing(payload.get("local_images"))]
        pictures = [picture_label(string(address)) for address in addresses]
        pictures += [content_text([block]) for block in blocks if string(block.get("type")) in {"image", "local_image"}]
        by_program = string(payload.get("kind")) in {"environment_context", "user_instructions"}
        if by_program or self._reviewing or is_envelope(text, known_only=True):
            return self._injected(text, stamp) or SkipReason.EMPTY
        return self._ask("event", text, "\n".join(filter(None, pictures)), stamp)

    def _ask(self, record_type: str, text: str, pictures: str, stamp: RecordStamp) -> RecordEvents:
        """Return a prompt, unless an earlier record of the other type (item or event) already contained it."""
        words = without_picture_tags(text)
        if self._copies.take(words, record_type="event" if record_type == "item" else "item"):
            return SkipReason.REPEATED
        request_text = "\n".join(filter(None, (request(text), pictures)))
        if not request_text:
            return SkipReason.EMPTY
        events = self._open(request_text, stamp)
        self._copies.add(words, record_type=record_type)
        return events

    def _open(self, text: str, stamp: RecordStamp) -> list[Turn | Note]:
        """Return the events that open an exchange, and clear the state of the previous exchange."""
        self._repetitions.settle()
        self._copies.clear()
        self._thoughts.clear()
        self._reviewing = False
        self._prompts.add(stamp.line)
        return self._prompt(text, stamp)

    def _agent_message(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        """Return a message from another agent: a task from the parent, or a report from a sub-agent."""
        author, recipient = string(payload.get("author")), string(payload.get("recipient"))
        text = clean(content_text(payload.get("content")))
        if not text:
            return SkipReason.ENCRYPTED
        if self._is_subagent and recipient.startswith(f"{author}/"):
            return self._open(text, stamp)
        return self._injected(text, stamp)

    def _hook_prompt(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        text = "\n".join(string(part.get("text")) for part in mappings(payload.get("fragments")))
        return self._injected(text, stamp) or SkipReason.EMPTY

    def _review_begins(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        """Return the user's request for a review, such as `/review <instructions>`.

        Until the review ends, user events contain text that the program wrote.
        """
        instructions = string(mapping(payload.get("target")).get("instructions"))
        instructions = instructions or first_string(payload, "user_facing_hint", "prompt")
        events = self._open(f"/review {clean(instructions)}".strip(), stamp)
        self._reviewing = True
        return events

    def _review_ends(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        self._reviewing = False
        return self._event(_REVIEW, stamp.reply(Kind.PROSE, review_text(mapping(payload.get("review_output")))))

    # Replies and tools.

    def _reasoning(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        texts = [clean(string(part.get("text"))) for part in mappings(payload.get("summary"))]
        texts = list(filter(None, texts)) or list(filter(None, [clean(content_text(payload.get("content")))]))
        for text in texts:
            self._repetitions.register(_key("thought", text))
        # Some versions repeat earlier summaries in each summary.
        new = [text for text in texts if text not in self._thoughts]
        self._thoughts.update(new)
        return stamp.reply(Kind.THINKING, "\n\n".join(new)) or (SkipReason.REPEATED if texts else SkipReason.ENCRYPTED)

    def _prose_event(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        text = first_string(payload, "message", "text") or content_text(payload.get("content"))
        return self._event(_key("prose", clean(text)), stamp.reply(Kind.PROSE, text))

    def _thought_event(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        parts = [*listing(payload.get("summary_text")), *listing(payload.get("raw_content"))]
        text = string(payload.get("text")) or "\n\n".join(map(string, parts))
        return self._event(_key("thought", clean(text)), stamp.reply(Kind.THINKING, text))

    def _event(self, key: str, turns: Sequence[Turn]) -> RecordEvents:
        return self._repetitions.delay(key, turns, only_record=self._only_record)

    def _call(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        return [self._calls.call(stamp, call_id(payload), called_tool(payload), arguments(payload))]

    def _output(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        name = string(payload.get("call_id"))
        call = self._calls.waiting.get(name, UNKNOWN_CALL)
        output = ToolOutput(tool_search_results(payload)) if "tools" in payload else output_of(payload.get("output"))
        turn = self._result(stamp, name, call, output)
        if call.writes:
            # The event contains the list of changed files.
            return self._event(name, [turn])
        self._repetitions.register(name)
        return [turn]

    def _command_end(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        return self._tool_event(payload, stamp, "exec_command", command_output(payload))

    def _mcp_end(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        invocation = mapping(payload.get("invocation")) or payload
        tool = f"mcp__{string(invocation.get('server'))}__{string(invocation.get('tool'))}"
        return self._tool_event(payload, stamp, tool, mcp_output(payload))

    def _tool_event(self, payload: Record, stamp: RecordStamp, tool: str, output: ToolOutput) -> RecordEvents:
        name = call_id(payload)
        return self._event(name, [self._result(stamp, name, ToolCall(tool, ""), output)])

    def _patch_end(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        """Return the result of a patch, with the files that it changed. The shorter record of the call is skipped."""
        call, changes = call_id(payload), mapping(payload.get("changes"))
        moved = (string(mapping(change).get("move_path")) for change in changes.values())
        paths = tuple(clean(path) for path in [*changes, *moved] if path)
        failed = payload.get("success") is False or payload.get("status") in ("failed", "declined")
        printed = "\n".join(filter(None, [string(payload.get("stdout")), string(payload.get("stderr"))]))
        self._repetitions.register(call)
        return [self._result(stamp, call, ToolCall("apply_patch", "", writes=paths), ToolOutput(printed, failed))]

    def _web_search_end(self, payload: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(web_results(payload))
        call = ToolCall("web_search", "")
        return [self._result(stamp, call_id(payload), call, ToolOutput(text))] if text else SkipReason.REPEATED

    def _result(self, stamp: RecordStamp, name: str, call: ToolCall, output: ToolOutput) -> Turn:
        return self._calls.result_of(call, stamp, name, output.text, failed=output.failed)


def _key(kind: str, text: str) -> str:
    return f"{kind} {' '.join(text.split())}"


_RECORD_TYPES = {"session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state"}


class Codex(FolderFormat):
    """Rollouts in `~/.codex/sessions/<year>/<month>/<day>` and `~/.codex/archived_sessions`.

    Codex compresses old rollouts.
    """

    agent = "codex"
    reader_class = CodexReader
    home_variable, home_folder, root_folders = "CODEX_HOME", ".codex", ("sessions", "archived_sessions")
    suffixes = (".jsonl", ".jsonl.zst")
    other_files = frozenset({"history.jsonl", "session_index.jsonl"})
    name_pattern = re.compile(r"rollout-.*\.jsonl(\.zst)?", re.DOTALL)

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be a rollout. Compressed duplicates of uncompressed rollouts are excluded."""
        duplicate = path.suffix == ".zst" and path.with_suffix("").exists()
        return super().may_be_transcript(path, root) and not duplicate

    def identify(self, path: Path, head: bytes) -> Session:
        """Return the session, identified by the first header.

        A fork repeats the headers of its ancestors after its own header.
        """
        header = next(headers(head_records(head)), Record())
        in_name = re.findall(UUID, path.name)
        native_id = string(header.get("id")) or (in_name[-1].lower() if in_name else path.name.partition(".")[0])
        source = mapping(header.get("source"))
        if "subagent" in source or header.get("thread_source") == "subagent" or header.get("parent_thread_id"):
            return Session(self.agent, native_id, SessionKind.SUBAGENT, parent_of(header))
        return Session(self.agent, native_id)

    def _is_from_agent(self, record: Record) -> bool:
        if "type" not in record:
            return record.get("record_type") == "state" or {"id", "timestamp", "instructions"} <= record.keys()
        return string(record["type"]) in _RECORD_TYPES and isinstance(record.get("payload"), dict)


FORMAT: TranscriptFormat = Codex()
