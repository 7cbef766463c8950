"""Support for Cline, and base classes for the extensions that continue its code: Roo Code and Kilo Code.

Each task is a folder in the extension's storage in the editor. `ui_messages.json` has what the user saw, with times.
`api_conversation_history.json` has the messages of the model; it is read if the other file is missing. Since 2026,
Cline stores sessions in `~/.cline/data/sessions/<session>/<session>.messages.json`.

- Supported: prompts, feedback, replies, reasoning, tool calls with results, commands with output, MCP calls, errors,
  compactions, models, token usage, titles of sessions, working folders, sub-agents, forks.
- Not supported: checkpoints, hooks, browser pictures. If a task does not record the text of requests to the model, a
  file whose change the user refused counts as changed, unless the user wrote the reason.
- Tested with: real tasks of October 2025 and January 2026, and the published fixtures of the session files.
- Test data: `examples/cline.jsonl`.
"""

import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import ClassVar, NamedTuple, cast

import orjson

from ...core.conversation import Fact, Kind, Note, Session, Speaker, Turn
from ..lines import Line, Record, clean
from .container_formats import SplitFormat, json_of
from .containers import message_line
from .json_values import (
    content_blocks,
    first_string,
    instant,
    joined_text,
    json_file,
    json_text,
    listing,
    mapping,
    mappings,
    media_label,
    string,
    total,
)
from .record_reader import RecordReader
from .transcript_format import ContainerFormat, RecordEvents, RecordStamp, SkipReason, record_id, unknown_type, usage

_PROMPTS = {"task", "user_feedback"}
_PROSE = {
    *("text", "completion_result", "plan_completion_result", "plan_mode_respond", "act_mode_respond", "followup"),
    *("report_bug", "summarize_task"),
}
_TOOLS = {
    "tool": "",
    "command": "execute_command",
    "use_mcp_server": "use_mcp_server",
    "browser_action_launch": "browser_action_launch",
    "browser_action": "browser_action",
    "use_subagents": "use_subagents",
    "new_task": "new_task",
}
"""Kinds of messages with a tool call, and the name of the tool unless the message names it."""
_RESULTS = {
    *("command_output", "mcp_server_response", "browser_action_result", "subagent", "codebase_search_result"),
    *("mcp_notification", "subtask_result"),
}
_ERRORS = {
    *("error", "diff_error", "clineignore_error", "rooignore_error", "api_req_failed", "mistake_limit_reached"),
    *("command_permission_denied", "condense_context_error", "auto_approval_max_req_reached"),
}
_COMPACTIONS = {"condense_context", "condense", "compaction", "sliding_window_truncation"}
_SKIPPED = {
    *("api_req_finished", "api_req_retried", "api_req_retry_delayed", "api_req_rate_limit_wait", "api_req_deleted"),
    *("checkpoint_created", "checkpoint_saved", "deleted_api_reqs", "hook_status", "info", "error_retry"),
    *("load_mcp_documentation", "mcp_server_request_started", "resume_completed_task", "resume_task"),
    *("shell_integration_warning", "shell_integration_warning_with_suggestion", "subagent_usage", "task_progress"),
    *("conditional_rules_applied", "browser_session_status", "too_many_tools_warning", "user_edit_todos"),
    *("payment_required_prompt", "invalid_model", "generate_explanation", "image"),
}
_CONTENT_IS_RESULT = {
    *("listFilesTopLevel", "listFilesRecursive", "listCodeDefinitionNames", "searchFiles", "webFetch", "webSearch"),
    *("codebaseSearch", "finishTask"),
}
_FOLDER = re.compile(r"# Current (?:Working|Workspace) Directory \((.+?)\)(?: Files)?(?:\n|\\n|$)")
_TYPED = re.compile(r"<(task|feedback|answer|user_message|user_input)\b[^>]*>\n?(.*?)\n?</\1>", re.DOTALL)
_DETAILS = re.compile(r"<environment_details>.*?(?:</environment_details>|\Z)", re.DOTALL)
_REFUSED = "The user denied this operation"
_REFUSED_EDIT = re.compile(rf"\[\w+ for '([^'\n]+)'[^\n]*\] Result:\s*{_REFUSED}")
_TOOL_TEXT = re.compile(r"\[[\w-]+(?: for .*)?\] Result:")


class _Edit(NamedTuple):
    """Call that changes a file, after the user was asked to allow it."""

    stamp: RecordStamp
    tool: str
    path: str
    content: str


class ClineReader(RecordReader):
    """Reader of one task: of its messages to the user, or of its messages to the model."""

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._pending, self._tool_name = "", ""
        """ID and tool of the last call in the current exchange. Results do not name their call."""
        self._edits = list[_Edit]()
        """Edits in the current exchange whose result is not known yet."""

    def _finish(self) -> None:
        self._release_edits(())

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            return self._header(mapping(record["conversation"]), line.number)
        message = mapping(record.get("message"))
        stamp = RecordStamp(line.number, instant(message.get("ts")), record_id("", line.data))
        if "role" in message:
            return self._model_message(message, stamp, is_first=record.get("first") is True)
        is_first = record.get("first") is True
        kind = "task" if is_first and message.get("say") == "text" else first_string(message, "say", "ask")
        events = self._shown(kind, message, stamp)
        if isinstance(events, str):
            return events
        model = mapping(message.get("modelInfo")).get("modelId")
        return [*events, *self._facts.note(line.number, Fact.MODEL, model)]

    def _header(self, header: Record, line: int) -> RecordEvents:
        fork = mapping(mapping(header.get("metadata")).get("fork"))
        facts = {
            Fact.SESSION: header.get("id"),
            Fact.PARENT: first_string(header, "parentTaskId") or fork.get("forkedFromSessionId"),
            Fact.CWD: header.get("cwd"),
            Fact.TITLE: header.get("title"),
            Fact.MODEL: header.get("model"),
        }
        return self._facts.notes(line, facts) or SkipReason.REPEATED

    # Messages to the user.

    def _shown(self, kind: str, message: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(string(message.get("text")))
        if kind != "tool" and kind not in _SKIPPED:
            self._release_edits(self._refused(kind, text, stamp))
        if kind in _PROMPTS:
            self._pending, self._tool_name = "", ""
            events = self._prompt(_with_files(text, message), stamp)
            if kind == "user_feedback":  # The user answers tasks that another task started, too.
                events = [_by_user(event) for event in events]
            return events or SkipReason.EMPTY
        if kind in _PROSE:
            return stamp.reply(Kind.PROSE, _question(text)) or SkipReason.EMPTY
        if kind == "reasoning":
            return stamp.reply(Kind.THINKING, text or string(message.get("reasoning"))) or SkipReason.EMPTY
        if kind in _TOOLS:
            return self._tool(_TOOLS[kind], text, stamp) or SkipReason.EMPTY
        if kind in _RESULTS:
            return [self._result(_output(text), stamp)] if text else SkipReason.EMPTY
        if kind in _ERRORS:
            return self._injected(text, stamp, failed=True) or SkipReason.EMPTY
        if kind in _COMPACTIONS:
            return self._compacted(_summary(text, message), stamp)
        if kind == "api_req_started":
            return self._request(_object(text), stamp) or SkipReason.BOOKKEEPING
        if kind == "user_feedback_diff":
            edit = _object(text)
            path = clean(string(edit.get("path")))
            return self._injected(f"The user edited {path}\n{string(edit.get('diff'))}", stamp)
        if kind == "hook_output_stream":
            return SkipReason.HOOK_OUTPUT
        return SkipReason.BOOKKEEPING if kind in _SKIPPED else unknown_type(kind)

    def _tool(self, tool: str, text: str, stamp: RecordStamp) -> list[Turn]:
        given = _object(text)
        if tool == "use_mcp_server":
            names = (string(given.get("serverName")), first_string(given, "toolName", "uri"))
            tool, arguments = "/".join(filter(None, names)) or tool, given.get("arguments")
        elif tool == "execute_command":
            arguments = {"command": text}
        else:
            tool = string(given.get("tool")) or tool
            left_out = {"tool", "operationIsLocatedInWorkspace", "isOutsideWorkspace", "isProtected", "content"}
            body = {} if tool in _CONTENT_IS_RESULT or tool == "readFile" else {"content": given.get("content")}
            arguments = {key: value for key, value in (given | body).items() if key not in left_out - body.keys()}
            arguments = {key: value for key, value in arguments.items() if value is not None}
        if not tool:
            return []
        self._pending, self._tool_name = stamp.record, tool
        turns = [self._calls.call(stamp, self._pending, tool, arguments or text)]
        call = self._calls.waiting[self._pending]
        if call.writes:
            self._edits.append(_Edit(stamp, tool, string(given.get("path")), string(given.get("content"))))
        elif tool in _CONTENT_IS_RESULT or call.reads:
            turns.append(self._result(string(given.get("content")), stamp))
        return turns

    def _result(self, text: str, stamp: RecordStamp) -> Turn:
        return self._calls.result(stamp, self._pending, text, failed=False, tool=self._tool_name)

    def _refused(self, kind: str, text: str, stamp: RecordStamp) -> Collection[str]:
        """Return the paths whose edits the user refused, according to the message after the edits.

        The next request to the model contains the refusal. A user who writes instead of answering refuses too.
        """
        if kind == "api_req_started":
            return _REFUSED_EDIT.findall(string(_object(text).get("request")))
        return [edit.path for edit in self._edits if kind == "user_feedback" and stamp.line == edit.stamp.line + 1]

    def _release_edits(self, refused: Collection[str]) -> None:
        """Release the results of the edits. `refused` are the paths of those that the user refused."""
        for edit in self._edits:
            failed = edit.path in refused
            text = _REFUSED if failed else edit.content
            self._released.append(
                self._calls.result(edit.stamp, edit.stamp.record, text, failed=failed, tool=edit.tool)
            )
        self._edits.clear()

    def _request(self, request: Record, stamp: RecordStamp) -> list[Note]:
        folder = _FOLDER.search(string(request.get("request")))
        tokens_in = total(request, "tokensIn", "cacheReads", "cacheWrites")
        used = usage(stamp.record, tokens_in, total(request, "tokensOut"))
        return self._facts.notes(stamp.line, {Fact.CWD: folder[1] if folder else "", Fact.USAGE: used})

    # Messages to the model.

    def _model_message(self, message: Record, stamp: RecordStamp, *, is_first: bool) -> RecordEvents:
        blocks, role = content_blocks(message.get("content")), string(message.get("role"))
        counts, model = mapping(message.get("metrics")), mapping(message.get("modelInfo"))
        tokens_in = total(counts, "inputTokens", "cacheReadTokens", "cacheWriteTokens")
        used = usage(stamp.record, tokens_in, total(counts, "outputTokens"))
        notes = self._facts.notes(stamp.line, {Fact.MODEL: first_string(model, "id", "modelId"), Fact.USAGE: used})
        match role:
            case "user":
                is_task = is_first or "id" in message
                turns = self._asked(blocks, stamp, is_task=is_task)
            case "assistant":
                turns = [turn for block in blocks for turn in self._said(block, stamp)]
            case _:
                return unknown_type(f"role {role}")
        return [*turns, *notes] or SkipReason.EMPTY

    def _asked(self, blocks: list[Record], stamp: RecordStamp, *, is_task: bool) -> list[Turn | Note]:
        """Return the turns of a message with the role `user`: results of tools, and what the user typed.

        The program tags typed text, except in the first message of a task (`is_task`). There, all text is typed unless
        it is a result of a tool, with which a resumed task begins.
        """
        results = [self._tool_result(block, stamp) for block in blocks if block.get("type") == "tool_result"]
        text = joined_text([block for block in blocks if block.get("type") != "tool_result"], _block_text)
        folder, rest = _FOLDER.search(text), clean(_DETAILS.sub("", text))
        typed = "\n\n".join(asked for _, asked in _TYPED.findall(rest))
        if not typed and is_task and not _TOOL_TEXT.match(rest):
            typed = rest
        prompt = self._prompt(typed, stamp) if typed else self._injected(rest, stamp)
        notes = self._facts.note(stamp.line, Fact.CWD, folder[1]) if folder else []
        return [*results, *prompt, *notes]

    def _said(self, block: Record, stamp: RecordStamp) -> list[Turn]:
        if block.get("type") == "tool_use":
            call, name = string(block.get("id")), string(block.get("name"))
            return [self._calls.call(stamp, call, name, block.get("input"))]
        is_thought = string(block.get("type")) in {"thinking", "reasoning"}
        text = first_string(block, "thinking", "text") if is_thought else _block_text(block)
        return stamp.reply(Kind.THINKING if is_thought else Kind.PROSE, text)

    def _tool_result(self, block: Record, stamp: RecordStamp) -> Turn:
        content = block.get("content")
        text = joined_text(content, _block_text) or (json_text(content) if content else "")
        failed = block.get("is_error") is True or text.startswith(_REFUSED)
        return self._calls.result(stamp, string(block.get("tool_use_id")), text, failed=failed)


def _by_user(event: Turn | Note) -> Turn | Note:
    if isinstance(event, Turn) and event.kind is Kind.PROMPT:
        return event._replace(speaker=Speaker.HUMAN)
    return event


def _object(text: str) -> Record:
    try:
        return mapping(orjson.loads(text))
    except orjson.JSONDecodeError:
        return {}


def _question(text: str) -> str:
    """Return a question with its options, which are JSON in newer versions."""
    asked = _object(text)
    options = [f"- {option if isinstance(option, str) else string(mapping(option).get('answer'))}"
               for option in listing(asked.get("options")) or listing(asked.get("suggest"))]  # fmt: skip
    return "\n".join([first_string(asked, "question", "response"), *options]) if asked else text


def _output(text: str) -> str:
    """Return the text of a result, without the picture of a browser."""
    found = _object(text)
    parts = (first_string(found, "logs", "result", "content", "query"), string(found.get("currentUrl")))
    return "\n".join(filter(None, parts)) or text


def _summary(text: str, message: Record) -> str:
    return (
        string(mapping(message.get("contextCondense")).get("summary")) or string(_object(text).get("summary")) or text
    )


def _with_files(text: str, message: Record) -> str:
    files = [f"[{clean(string(path))}]" for path in listing(message.get("files")) if path]
    pictures = [media_label("picture", picture) for picture in listing(message.get("images"))]
    return "\n".join([text, *files, *pictures]).strip()


def _block_text(block: Record) -> str:
    if string(block.get("type")) in {"image", "file"}:
        source = mapping(block.get("source"))
        return media_label(first_string(source, "media_type") or string(block.get("type")), source.get("data"))
    return string(block.get("text"))


_UI, _MODEL, _MESSAGES = "ui_messages.json", "api_conversation_history.json", ".messages.json"
EDITORS = ("Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf", "Trae", "Kiro", "Antigravity")
"""Names of the folders in which editors that run extensions of VS Code store their data."""


def editor_folders() -> list[Path]:
    """Return the folders with the user's data of each editor that runs extensions of VS Code."""
    home = Path.home()
    if sys.platform == "darwin":
        data = home / "Library" / "Application Support"
    elif sys.platform == "win32":
        data = Path(os.environ.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        data = Path(os.environ.get("XDG_CONFIG_HOME") or home / ".config")
    servers = [home / name / "data" / "User" for name in (".vscode-server", ".vscode-remote", ".cursor-server")]
    return [*(data / name / "User" for name in EDITORS), *servers]


EXTENSIONS = ("saoudrizwan.claude-dev", "rooveterinaryinc.roo-cline", "kilocode.kilo-code")
"""Identifiers of the extensions that store tasks in this form."""


class TaskFormat(SplitFormat):
    """Base class of extensions whose tasks are folders in the storage that the editor gives them."""

    main_files = (_UI, _MODEL)
    folder_fields = ("cwd",)
    reader_class = ClineReader
    extension: ClassVar[str]
    """Identifier of the extension, which names the folder of its storage."""

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of the extension's tasks in each editor."""
        patterns = [f"globalStorage/{self.extension}/tasks/*/{name}" for name in self.main_files]
        return [(user, pattern) for user in editor_folders() for pattern in patterns]

    def is_container(self, path: Path) -> bool:
        """Return whether a file represents a task of this extension. Elsewhere, a task counts as one of Cline."""
        owner = next((name for name in EXTENSIONS if name in path.parts), EXTENSIONS[0])
        return owner == self.extension and super().is_container(path)

    def parts(self, path: Path) -> Iterable[Path]:
        """Return the files of a task."""
        return [path, *(path.with_name(name) for name in ("history_item.json", "task_metadata.json"))]

    def session_lines(self, path: Path) -> Iterator[bytes]:
        """Yield the header and the messages of a task."""
        session = self.session_id(path)
        yield message_line(session, conversation={"id": session} | self._about(path))
        for number, message in enumerate(listing(json_of(path))):
            first = {"first": True} if number == 0 else {}
            name = mapping(message).get("ts", number)
            yield message_line(f"{session}/{name}", message=cast("object", message), **first)

    def _about(self, path: Path) -> Record:
        """Return the description of a task that its folder or the list of tasks contains."""
        item = json_file(path.with_name("history_item.json"))
        listed = path.parents[2] / "state" / "taskHistory.json"
        if not item and listed.is_file():
            items = mappings(json_of(listed))
            item = next((each for each in items if string(each.get("id")) == path.parent.name), Record())
        about = {  # The recorded title is the first prompt.
            "cwd": first_string(item, "workspace", "cwdOnTaskInitialization"),
            "model": first_string(item, "modelId"),
            "parentTaskId": first_string(item, "parentTaskId"),
        }
        return {name: value for name, value in about.items() if value}


class Cline(TaskFormat):
    """Tasks of the extension, and sessions of the program and of newer versions of the extension."""

    agent = "cline"
    extension = EXTENSIONS[0]
    parent_fields = ("subagentOf",)

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of the tasks in each editor, and the folder of the newer sessions."""
        tasks = [(_data(), f"tasks/*/{name}") for name in self.main_files]
        return [*super().locations(), *tasks, (_sessions(), f"*/*{_MESSAGES}")]

    def is_container(self, path: Path) -> bool:
        """Return whether a file represents a task, or has the messages of a session."""
        return path.name.endswith(_MESSAGES) or super().is_container(path)

    def session_id(self, path: Path) -> str:
        """Return the name of the task's folder or of the session. Names of sub-agents repeat in each session."""
        name = path.name.removesuffix(_MESSAGES)
        if not path.name.endswith(_MESSAGES) or name == path.parent.name:
            return path.parent.name
        return f"{path.parent.name}-{name}"

    def parts(self, path: Path) -> Iterable[Path]:
        """Return the files of a task or session."""
        if path.name.endswith(_MESSAGES):
            return [path, path.with_name(f"{path.name.removesuffix(_MESSAGES)}.json")]
        return super().parts(path)

    def session_lines(self, path: Path) -> Iterator[bytes]:
        """Yield the header and the messages of a task or session."""
        if not path.name.endswith(_MESSAGES):
            yield from super().session_lines(path)
            return
        document, session = mapping(json_of(path)), self.session_id(path)
        manifest = json_file(path.with_name(f"{path.parent.name}.json"))
        header: Record = {"id": session, "cwd": first_string(manifest, "workspace_root", "cwd")}
        if session == path.parent.name:
            metadata = mapping(manifest.get("metadata"))
            header |= {"title": metadata.get("title"), "metadata": {"fork": metadata.get("fork")}}
        else:
            header["subagentOf"] = path.parent.name
        yield message_line(session, conversation={name: value for name, value in header.items() if value})
        for message in mappings(document.get("messages")):
            yield message_line(f"{session}/{string(message.get('id'))}", message=message)


def _data() -> Path:
    folder = os.environ.get("CLINE_DIR")
    return Path(os.environ.get("CLINE_DATA_DIR") or Path(folder or Path.home() / ".cline") / "data").expanduser()


def _sessions() -> Path:
    return Path(os.environ.get("CLINE_SESSION_DATA_DIR") or _data() / "sessions").expanduser()


FORMAT: ContainerFormat = Cline()
