"""Authors of texts that Claude Code records with the role `user`, and its tool calls as readable text.

The author is the user, a command, or the program itself. Tool calls and results name the affected files.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct

from ...core.conversation import Kind, Speaker
from ..lines import Record, clean, clip
from .json_values import (
    RESULT_LIMIT,
    ToolCall,
    call_text,
    first_string,
    joined_text,
    listing,
    mapping,
    mappings,
    media_label,
    named_values,
    string,
    tool_name,
)
from .transcript_format import HINT, split_program_text, without_reminders

_COMMAND = ("command-name", "command-message", "command-args", "command-contents")
_SHELL_INPUT = ("bash-input",)
_SHELL_OUTPUT = ("bash-stdout", "bash-stderr")
_ACTIONS = (*_COMMAND, *_SHELL_INPUT, *_SHELL_OUTPUT)
"""Tags around what the user did: a slash command or a shell command with its output."""
_INTERRUPTED = "[Request interrupted by user"
_CONTINUED = "This session is being continued from a previous conversation"
_UNKNOWN_COMMAND = re.compile(r"Unknown (?:skill|slash command): \S+")
"""Answer of the program to a command that it does not know."""
_TEAM_MESSAGE = re.compile(r"<teammate-message(?=[\s>])")


class AttributedText(NamedTuple):
    """Text without its enclosing tags, and the author of the text."""

    speaker: Speaker
    kind: Kind
    text: str
    tool: str = ""
    added: str = ""
    """Text of the program that was recorded in the same message."""

    @classmethod
    def injected(cls, text: str) -> "AttributedText":
        """Return a text that Claude Code wrote itself. Its author is the host, not the user."""
        return cls(Speaker.HOST, Kind.INJECTED, text)


def attribute(text: str) -> AttributedText:
    """Return a text without its enclosing tags, together with its author.

    The tags of commands are removed only if they enclose the whole text, because users also quote these tags. The text
    is empty if the tags enclose nothing.
    """
    typed, added, reminders = split_program_text(text.strip())
    if not typed:
        return AttributedText.injected(added or reminders)
    if typed.startswith("<"):
        tags = _actions(typed)
        if tags:
            return _unwrapped(tags)
    if typed.startswith(_CONTINUED):
        return AttributedText(Speaker.HOST, Kind.COMPACTION, typed)
    if _UNKNOWN_COMMAND.fullmatch(typed):
        return AttributedText.injected(typed)
    if typed.startswith(_INTERRUPTED) and typed.endswith("]") and "\n" not in typed:
        return AttributedText.injected("\n".join(filter(None, (typed, added))))
    return AttributedText(Speaker.HUMAN, Kind.PROMPT, typed, added=added)


def team_task(text: str) -> str:
    """Return the task in a message to a member of an agent team, or an empty string for other messages.

    Besides tasks, the program sends its own notices to members, as JSON.
    """
    typed, task, _ = split_program_text(text.strip())
    return "" if typed or task.startswith("{") or not _TEAM_MESSAGE.match(text.strip()) else task


def _actions(text: str) -> dict[str, str]:
    """Return the content of each tag around a command, by tag name. The result is empty if there is other text."""
    fields: dict[str, str] = {}
    remaining = text
    while remaining.startswith("<"):
        tag = next((tag for tag in _ACTIONS if remaining.startswith((f"<{tag}>", f"<{tag} "))), None)
        end = remaining.find(f"</{tag}>") if tag else -1
        if tag is None or end < 0:
            return {}
        fields.setdefault(tag, remaining[remaining.find(">") + 1 : end].strip())
        remaining = remaining[end + len(tag) + 3 :].lstrip()
    return {} if remaining else fields


def _unwrapped(tags: dict[str, str]) -> AttributedText:
    first, content = next(iter(tags)), "\n".join(filter(None, tags.values()))
    if first in _COMMAND:
        return _command(tags, local=first == "command-name")
    if first in _SHELL_INPUT:
        return AttributedText(Speaker.HUMAN, Kind.CALL, f"! {tags[first]}", tool="Bash")
    return AttributedText(Speaker.TOOL, Kind.RESULT, content, tool="Bash")


def _command(tags: dict[str, str], *, local: bool) -> AttributedText:
    """Return a slash command with its author.

    A `local` command is run by the program, not by the assistant. A local command counts as a prompt only if its
    arguments have at least 3 words. An example is `/plan add a login page`, which is a request to the assistant.
    """
    name, arguments = tags.get("command-name", tags.get("command-message", "")), tags.get("command-args", "")
    text = f"{name} {arguments}".strip()
    if local and len(arguments.split()) < 3:
        return AttributedText.injected(text)
    return AttributedText(Speaker.HUMAN, Kind.PROMPT, text)


_READERS = {"Read", "NotebookRead"}
_WRITERS = {"Edit", "MultiEdit", "Write", "NotebookEdit"}
_ASK_USER = "AskUserQuestion"
_REPORTS_REFUSAL = _WRITERS | {_ASK_USER, "ExitPlanMode"}
"""Tools of Claude Code that return the user's reason if the user refuses a call."""
_REJECTED = "The user doesn't want to proceed with this tool use."
_REJECTED_WITH = "To tell you how to proceed, the user said:\n"
_CLARIFY = "The user wants to clarify these questions."

Arguments: TypeAlias = Mapping[str, Any]


class ToolResult(Struct, frozen=True):
    """Result of a tool: its text, its author, and the files that the tool read or wrote."""

    text: str
    failed: bool
    speaker: Speaker = Speaker.TOOL
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def call_of(block: Record, *, shorten: bool) -> ToolCall:
    """Return the tool call in a `tool_use` block."""
    arguments, tool = mapping(block.get("input")), tool_name(string(block.get("name")))
    path = clean(first_string(arguments, "file_path", "notebook_path"))
    text = call_text(tool, clean(_BODIES.get(tool, named_values)(arguments)), shorten=shorten)
    reads, writes = path and tool in _READERS, path and tool in _WRITERS
    return ToolCall(tool, text, (path,) if reads else (), (path,) if writes else ())


def _values(*names: str) -> Callable[[Arguments], str]:
    def body(arguments: Arguments) -> str:
        return " ".join(text for name in names if (text := string(arguments.get(name))))

    return body


def _shell(arguments: Arguments) -> str:
    command, purpose = string(arguments.get("command")), string(arguments.get("description"))
    return f"{command}  # {purpose}" if purpose else command


def _edit(arguments: Arguments) -> str:
    edits: list[Arguments] = [*mappings(arguments.get("edits"))] or [arguments]
    changes = (f"- {string(edit.get('old_string'))}\n+ {string(edit.get('new_string'))}" for edit in edits)
    return "\n".join([string(arguments.get("file_path")), *changes])


def _write(arguments: Arguments) -> str:
    path = string(arguments.get("file_path")) or string(arguments.get("notebook_path"))
    return f"{path}\n{string(arguments.get('content')) or string(arguments.get('new_source'))}"


def _search(arguments: Arguments) -> str:
    locations = [string(arguments.get(name)) for name in ("path", "glob", "type")]
    return " in ".join([string(arguments.get("pattern")), *filter(None, locations)])


def _todos(arguments: Arguments) -> str:
    items = mappings(arguments.get("todos"))
    return "\n".join(f"[{string(item.get('status'))}] {string(item.get('content'))}" for item in items)


def _task(arguments: Arguments) -> str:
    head = " · ".join(filter(None, (string(arguments.get("subagent_type")), string(arguments.get("description")))))
    return f"{head}\n{string(arguments.get('prompt'))}"


def _task_update(arguments: Arguments) -> str:
    return f"#{arguments.get('taskId', '')} {_values('status', 'subject', 'description')(arguments)}"


def _questions(arguments: Arguments) -> str:
    asked: list[str] = []
    for question in mappings(arguments.get("questions")):
        options = [string(option.get("label")) for option in mappings(question.get("options"))]
        asked.append(f"{string(question.get('question'))} [{' | '.join(options)}]")
    return "\n".join(asked)


_BODIES: dict[str, Callable[[Arguments], str]] = {
    "Agent": _task,
    "AskUserQuestion": _questions,
    "Bash": _shell,
    "Edit": _edit,
    "ExitPlanMode": _values("plan"),
    "Glob": _search,
    "Grep": _search,
    "MultiEdit": _edit,
    "NotebookEdit": _write,
    "NotebookRead": _values("notebook_path"),
    "PowerShell": _shell,
    "Read": _values("file_path"),
    "Skill": _values("skill", "command", "args"),
    "Task": _task,
    "TaskCreate": _values("subject", "description"),
    "TaskUpdate": _task_update,
    "TodoWrite": _todos,
    "ToolSearch": _values("query"),
    "WebFetch": _values("url", "prompt"),
    "WebSearch": _values("query"),
    "Write": _write,
}


def result_of(block: Record, call: ToolCall, extra: object, *, shorten: bool) -> ToolResult:
    """Return the tool result in a result block. `extra` is the record's `toolUseResult`, with paths and answers.

    The author is the user in two cases only:

    - The result answers an `AskUserQuestion` call.
    - The result states why the user refused a question, a plan or an edit.

    In all other cases the author is the tool, even if the result contains the phrases of a refusal. A server or a
    command can print these phrases too.
    """
    details = mapping(extra)
    failed = block.get("is_error") is True or details.get("is_error") is True or details.get("interrupted") is True
    limit = RESULT_LIMIT if shorten else None
    reads, writes = ((), ()) if failed else _files(call, details)
    if shorten and (reads or writes):
        return ToolResult(", ".join((*reads, *writes)), failed, reads=reads, writes=writes)
    text = without_reminders(clean(content_text(block.get("content")) or _extra_text(extra)))
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    own_tool = call.tool if block.get("type") == "tool_result" else ""
    if failed:
        return _failure(text, limit, by_user=own_tool in _REPORTS_REFUSAL and not details)
    if own_tool == _ASK_USER and details.get("answers") and "questions" in details:
        return ToolResult(clip(_answers(details), limit) or text, failed, speaker=Speaker.HUMAN)
    return ToolResult(clip(text, limit), failed, reads=reads, writes=writes)


def _failure(text: str, limit: int | None, *, by_user: bool) -> ToolResult:
    """Return the result of a failed call. Its author is the user if the user refused the call and gave a reason."""
    if text.startswith(_REJECTED):
        reason = text.partition(_REJECTED_WITH)[2].partition(HINT)[0].strip()
        if by_user and reason and not reason.startswith(_CLARIFY):
            return ToolResult(clip(reason, limit), failed=True, speaker=Speaker.HUMAN)
        text = reason or _REJECTED
    return ToolResult(clip(text, limit), failed=True)


def _answers(details: Arguments) -> str:
    """Return the user's answers to the assistant's questions, with the user's notes."""
    notes = mapping(details.get("annotations"))
    lines: list[str] = []
    for question, value in mapping(details.get("answers")).items():
        answer = value.strip() if isinstance(value, str) else ", ".join(map(string, listing(value))).strip()
        note = string(mapping(notes.get(question)).get("notes"))
        lines.append(f"{question} → {answer}" + (f" ({note})" if note and note.strip() != answer else ""))
    return clean("\n".join(lines))


def _files(call: ToolCall, details: Arguments) -> tuple[tuple[str, ...], tuple[str, ...]]:
    read = clean(string(mapping(details.get("file")).get("filePath")))
    written = clean(string(details.get("filePath"))) if "structuredPatch" in details or "newString" in details else ""
    return (read,) if read else call.reads, (written,) if written else call.writes


def _extra_text(extra: object) -> str:
    if isinstance(extra, str):
        return extra
    details = mapping(extra)
    output = "\n".join(filter(None, (string(details.get("stdout")), string(details.get("stderr")))))
    return output or content_text(details.get("content")) or content_text(extra)


def content_text(content: object) -> str:
    """Return the text of a message or a result, with pictures and documents replaced by their type and size."""
    return content if isinstance(content, str) else joined_text(mappings(content), block_text)


def block_text(block: Record) -> str:
    """Return the text of a content block."""
    kind = string(block.get("type"))
    if kind == "text":
        return string(block.get("text"))
    if kind in {"image", "document"}:
        source = mapping(block.get("source"))
        name = first_string(source, "media_type", "url") or kind
        return media_label(name, source["data"]) if source.get("data") else f"[{name}]"
    if kind == "tool_reference":
        return string(block.get("tool_name"))
    if kind == "web_search_result":
        return f"{string(block.get('title'))} {string(block.get('url'))}".strip()
    return ""
