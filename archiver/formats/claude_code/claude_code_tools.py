"""Tool calls and their results as readable text, and the files they touched."""

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import orjson

from ....core.conversation import Speaker
from ...files.clipping import clean, clip, one_line
from ..json_values import listing, mapping, string
from .claude_code_prompts import without_reminders

INPUT_LIMIT = 2000
RESULT_LIMIT = 1500
"""Characters kept of an input or a result when texts are shortened."""

_READERS = {"Read", "NotebookRead"}
_WRITERS = {"Edit", "MultiEdit", "Write", "NotebookEdit"}
_ASKS = "AskUserQuestion"
_REPORTS_REFUSAL = _WRITERS | {_ASKS, "ExitPlanMode"}
"""Tools whose failures carry the user's reason for a refusal. Failures of all others may begin with foreign text."""
_REJECTED = "The user doesn't want to proceed with this tool use."
_REJECTED_WITH = "To tell you how to proceed, the user said:\n"
_CLARIFY = "The user wants to clarify these questions."

Arguments: TypeAlias = Mapping[str, Any]


class Call(NamedTuple):
    """What must be remembered of a call until its result comes."""

    tool: str
    path: str


class Outcome(NamedTuple):
    """A result: its text, whether it failed, and the files that were really read or written."""

    text: str
    failed: bool
    speaker: Speaker = Speaker.TOOL
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()


def call(block: Arguments) -> Call:
    """The call that a `tool_use` block makes. Tool names are free text, so they are brought to one short line."""
    arguments = mapping(block.get("input"))
    path = string(arguments.get("file_path")) or string(arguments.get("notebook_path"))
    return Call(_name(string(block.get("name"))), clean(path))


@lru_cache(maxsize=1024)
def _name(name: str) -> str:
    return one_line(clean(name), 100)


def describe(tool: str, arguments: Arguments, *, shorten: bool) -> str:
    """A call as `Tool: what it was asked to do`."""
    body = clean(_BODIES.get(tool, _pairs)(arguments))
    return clip(f"{tool}: {body}" if body else tool, INPUT_LIMIT if shorten else None)


def _pairs(arguments: Arguments) -> str:
    return ", ".join(f"{key}={value if isinstance(value, str) else _json(value)}" for key, value in arguments.items())


def _json(value: object) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # nested more deeply than orjson writes
        return "…"


def _values(*names: str) -> Callable[[Arguments], str]:
    def body(arguments: Arguments) -> str:
        return " ".join(text for name in names if (text := string(arguments.get(name))))

    return body


def _bash(arguments: Arguments) -> str:
    command, purpose = string(arguments.get("command")), string(arguments.get("description"))
    return f"{command}  # {purpose}" if purpose else command


def _change(old: object, new: object) -> str:
    return f"- {string(old)}\n+ {string(new)}"


def _edit(arguments: Arguments) -> str:
    edits: list[Arguments] = [mapping(edit) for edit in listing(arguments.get("edits"))]
    edits = edits or [arguments]
    changes = (_change(edit.get("old_string"), edit.get("new_string")) for edit in edits)
    return "\n".join([string(arguments.get("file_path")), *changes])


def _write(arguments: Arguments) -> str:
    path = string(arguments.get("file_path")) or string(arguments.get("notebook_path"))
    return f"{path}\n{string(arguments.get('content')) or string(arguments.get('new_source'))}"


def _grep(arguments: Arguments) -> str:
    places = [string(arguments.get(name)) for name in ("path", "glob", "type")]
    return " in ".join([string(arguments.get("pattern")), *filter(None, places)])


def _todos(arguments: Arguments) -> str:
    items = (mapping(item) for item in listing(arguments.get("todos")))
    return "\n".join(f"[{string(item.get('status'))}] {string(item.get('content'))}" for item in items)


def _task(arguments: Arguments) -> str:
    head = " · ".join(filter(None, (string(arguments.get("subagent_type")), string(arguments.get("description")))))
    return f"{head}\n{string(arguments.get('prompt'))}"


def _task_update(arguments: Arguments) -> str:
    return f"#{arguments.get('taskId', '')} {_values('status', 'subject', 'description')(arguments)}"


def _questions(arguments: Arguments) -> str:
    asked: list[str] = []
    for question in map(mapping, listing(arguments.get("questions"))):
        options = [string(mapping(option).get("label")) for option in listing(question.get("options"))]
        asked.append(f"{string(question.get('question'))} [{' | '.join(options)}]")
    return "\n".join(asked)


_BODIES: dict[str, Callable[[Arguments], str]] = {
    "Agent": _task,
    "AskUserQuestion": _questions,
    "Bash": _bash,
    "Edit": _edit,
    "ExitPlanMode": _values("plan"),
    "Glob": _grep,
    "Grep": _grep,
    "MultiEdit": _edit,
    "NotebookEdit": _write,
    "NotebookRead": _values("notebook_path"),
    "PowerShell": _bash,
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


def outcome(block: Arguments, made: Call | None, extra: object, *, shorten: bool) -> Outcome:
    """Return what a result block says.

    The user speaks only through Claude Code's own tools: as the answers of `AskUserQuestion`, and as the reason for
    refusing a question, a plan or an edit. The same words from any other tool are that tool's: a server or a command
    can print them.

    Args:
        block: The `tool_result` block.
        made: The call that it answers; None where the transcript has none.
        extra: The line's `toolUseResult`, which knows paths and answers.
        shorten: Whether to clip long texts.
    """
    details = mapping(extra)
    failed = block.get("is_error") is True or details.get("is_error") is True or details.get("interrupted") is True
    limit = RESULT_LIMIT if shorten else None
    reads, writes = ((), ()) if failed else _files(made, details)
    if shorten and (reads or writes):
        return Outcome(", ".join((*reads, *writes)), failed, reads=reads, writes=writes)
    text = without_reminders(clean(content_text(block.get("content")) or _extra_text(extra)))
    text = text.removeprefix("<tool_use_error>").removesuffix("</tool_use_error>")
    own = made.tool if made is not None and block.get("type") == "tool_result" else ""
    if failed:
        return _failure(text, limit, by_user=own in _REPORTS_REFUSAL and not details)
    if own == _ASKS and details.get("answers") and "questions" in details:
        return Outcome(clip(_answers(details), limit) or text, failed, speaker=Speaker.HUMAN)
    return Outcome(clip(text, limit), failed, reads=reads, writes=writes)


def _failure(text: str, limit: int | None, *, by_user: bool) -> Outcome:
    """Return a failure; where the user refused the call and gave a reason, the reason is the user's."""
    if text.startswith(_REJECTED):
        reason = text.partition(_REJECTED_WITH)[2].strip()
        if by_user and reason and not reason.startswith(_CLARIFY):
            return Outcome(clip(reason, limit), failed=True, speaker=Speaker.HUMAN)
        text = reason or _REJECTED
    return Outcome(clip(text, limit), failed=True)


def _answers(details: Arguments) -> str:
    """The answers a person gave to the assistant's questions, with the notes they added."""
    notes = mapping(details.get("annotations"))
    lines: list[str] = []
    for question, answer in mapping(details.get("answers")).items():
        said = answer if isinstance(answer, str) else ", ".join(map(string, listing(answer)))
        note = string(mapping(notes.get(question)).get("notes"))
        lines.append(f"{question} → {said.strip()}" + (f" ({note})" if note and note.strip() != said.strip() else ""))
    return clean("\n".join(lines))


def _files(made: Call | None, details: Arguments) -> tuple[tuple[str, ...], tuple[str, ...]]:
    read = clean(string(mapping(details.get("file")).get("filePath")))
    written = clean(string(details.get("filePath"))) if "structuredPatch" in details or "newString" in details else ""
    if made is not None and made.path:
        read = read or (made.path if made.tool in _READERS else "")
        written = written or (made.path if made.tool in _WRITERS else "")
    return (read,) if read else (), (written,) if written else ()


def _extra_text(extra: object) -> str:
    if isinstance(extra, str):
        return extra
    details = mapping(extra)
    shown = "\n".join(filter(None, (string(details.get("stdout")), string(details.get("stderr")))))
    return shown or content_text(details.get("content")) or content_text(extra)


def content_text(content: object) -> str:
    """The text of a message's or a result's content; pictures and documents as their type and size."""
    if isinstance(content, str):
        return content
    return "\n".join(filter(None, (block_text(mapping(block)) for block in listing(content))))


def block_text(block: Arguments) -> str:
    """The text of one content block, empty when it has none."""
    kind = string(block.get("type"))
    if kind == "text":
        return string(block.get("text"))
    if kind in {"image", "document"}:
        source = mapping(block.get("source"))
        size = len(string(source.get("data"))) * 3 // 4
        name = string(source.get("media_type")) or string(source.get("url")) or kind
        return f"[{name}, {size // 1024} KB]" if size else f"[{name}]"
    if kind == "tool_reference":
        return string(block.get("tool_name"))
    if kind == "web_search_result":
        return f"{string(block.get('title'))} {string(block.get('url'))}".strip()
    return ""
