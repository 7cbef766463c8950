"""Support for OpenHands.

OpenHands stores each event of a conversation in a file of its own. Versions from 1.0 on use
`~/.openhands/conversations/<id>/events`, and earlier versions `~/.openhands/sessions/<id>/events`.
`docs/formats/openhands.md` names the sources.

- Supported: prompts, replies, thinking, tool calls with results, refused calls, errors, compactions, branches, titles,
  token usage, sub-agents, and trajectories that earlier versions saved as one JSON document.
- Not supported: the system prompt, updates of the state, hook output, long tool output in `observations`.
- Tested with: descriptions and the published source of versions 0.62 and 1.43, and a state file of 1.11.
- Test data: `examples/openhands.jsonl`.
"""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from ...core.conversation import Fact, Kind, Note, Session, Turn
from ..lines import Line, Record, clean
from .container_formats import SplitFormat, message_of
from .containers import exact_json, file_fingerprint, fingerprint, message_line
from .json_values import (
    EntryTree,
    count_of,
    first_string,
    joined_text,
    json_file,
    listing,
    local_instant,
    mapping,
    mappings,
    string,
    total,
)
from .record_reader import RecordHandler, RecordReader
from .transcript_format import (
    ContainerFormat,
    RecordEvents,
    RecordStamp,
    SkipReason,
    record_id,
    unknown_type,
    usage,
)

_STATE, _EVENTS, _FIRST, _SUBAGENTS = "base_state.json", "events", "0.json", "subagents"
_ROOT = "__root__"
"""Parent of an event that begins a new tree."""
_SKIPPED = {
    **dict.fromkeys(
        (
            "CondensationRequest", "ConversationStateUpdateEvent", "InterruptEvent", "LLMCompletionLogEvent",
            "PauseEvent", "StreamingDeltaEvent", "TokenEvent", "action/change_agent_state", "action/null",
            "action/condensation_request", "action/pause", "action/recall", "action/resume", "action/start",
            "action/stop", "observation/agent_state_changed", "observation/null", "observation/think",
            "observation/condense", "observation/success",
        ),
        SkipReason.BOOKKEEPING,
    ),
    "HookExecutionEvent": SkipReason.HOOK_OUTPUT,
    "SystemPromptEvent": SkipReason.CONTEXT,
    "action/system": SkipReason.CONTEXT,
    "observation/recall": SkipReason.CONTEXT,
}  # fmt: skip
_NOT_ARGUMENTS = {
    *("kind", "thought", "security_risk", "confirmation_state", "impl_source", "hidden", "blocking", "is_static"),
    *("is_input", "translated_ipython_code", "return_axtree"),
}


class OpenHandsReader(RecordReader):
    """Reader of one conversation, with one event per record.

    In versions from 1.0 on, the field `kind` is the type of an event. Earlier versions distinguish actions and
    observations, and the field of that name is the type.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        super().__init__(session, shorten=shorten)
        self._tree, self._previous = EntryTree(), ""
        self._handlers: dict[str, RecordHandler] = {
            "MessageEvent": self._message,
            "ActionEvent": self._action,
            "ObservationEvent": self._observation,
            "UserRejectObservation": self._observation,
            "AgentErrorEvent": self._observation,
            "ACPToolCallEvent": self._foreign_call,
            "Condensation": self._condensation,
            "CondensationSummaryEvent": self._condensation,
            "ConversationErrorEvent": self._error,
            "action/message": self._old_message,
            "action/condensation": self._old_condensation,
            "observation/error": self._old_error,
        }

    def _finish(self) -> None:
        self._released += self._tree.abandoned(partial=self._partial)

    def _record(self, record: Record, line: Line) -> RecordEvents:
        if "conversation" in record:
            facts = {Fact.TITLE: ("title",), Fact.CWD: ("working_dir",), Fact.MODEL: ("model",)}
            return self._header_facts(record, line, facts)
        if "usage" in record:
            return self._usage(mapping(record["usage"]), line.number)
        event = message_of(record) or record
        kind = string(event.get("kind")) or next(
            (f"{name}/{string(event.get(name))}" for name in ("action", "observation") if event.get(name)), ""
        )
        own_id = event.get("id")
        entry = own_id if isinstance(own_id, str) else string(record.get("id"))
        stamp = RecordStamp(line.number, local_instant(event.get("timestamp")), record_id(entry, line.data))
        if kind != "ConversationStateUpdateEvent":
            parent = string(event.get("parent_id"))
            self._tree.add(entry, "" if parent == _ROOT else parent or self._previous, partial=self._partial)
            self._previous = entry
        handler = self._handlers.get(kind)
        if handler is None and kind not in _SKIPPED:
            handler = {"action": self._old_action, "observation": self._old_result}.get(kind.partition("/")[0])
        if handler is None:
            return _SKIPPED.get(kind) or unknown_type(kind)
        events = handler(event, stamp) or SkipReason.EMPTY
        if not isinstance(events, str):
            self._tree.mark_events(entry, line.number)
        return events

    def _usage(self, used: Record, line: int) -> RecordEvents:
        notes = list[Note]()
        for metrics in mapping(used.get("usage_to_metrics")).values():
            for counts in mappings(mapping(metrics).get("token_usages")):
                tokens = usage(string(counts.get("response_id")) or str(line), *_tokens(counts))
                notes += self._facts.note(line, Fact.USAGE, tokens)
        return notes or SkipReason.BOOKKEEPING

    # Events of versions from 1.0 on.

    def _message(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        message = mapping(event.get("llm_message"))
        text = clean(_text(message.get("content")))
        if string(event.get("source")) == "user":
            prompt = self._prompt(text, stamp) if text else []
            return [*prompt, *self._injected(_text(event.get("extended_content")), stamp)]
        if string(message.get("role")) == "user":
            return self._injected(text, stamp)
        group = string(event.get("llm_response_id"))
        return [*self._thinking(message, stamp, group), *stamp.reply(Kind.PROSE, text, group)]

    def _thinking(self, message: Record, stamp: RecordStamp, group: str) -> list[Turn]:
        blocks = [string(block.get("thinking")) for block in mappings(message.get("thinking_blocks"))]
        thought = "\n\n".join(filter(None, blocks)) or string(message.get("reasoning_content"))
        return stamp.reply(Kind.THINKING, thought, group)

    def _action(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        """Return the reasoning, the reply and the call. The calls `think` and `finish` only contain text."""
        group, action, call = string(event.get("llm_response_id")), mapping(event.get("action")), event.get("tool_call")
        turns = [*self._thinking(event, stamp, group), *stamp.reply(Kind.PROSE, _text(event.get("thought")), group)]
        match string(action.get("kind")):
            case "ThinkAction":
                return turns + stamp.reply(Kind.THINKING, string(action.get("thought")), group)
            case "FinishAction":
                return turns + stamp.reply(Kind.PROSE, string(action.get("message")), group)
            case kind:
                arguments: object = _arguments(action)
                if kind == "MCPToolAction" or not action:
                    arguments = mapping(call).get("arguments")
        tool = string(event.get("tool_name")) or string(mapping(call).get("name"))
        return [*turns, self._calls.call(stamp, string(event.get("tool_call_id")), tool, arguments, group=group)]

    def _observation(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        observation, tool = mapping(event.get("observation")), string(event.get("tool_name"))
        if tool in {"think", "finish"} and not observation.get("is_error"):
            return SkipReason.BOOKKEEPING
        fault = first_string(event, "rejection_reason", "error")
        exited = observation.get("exit_code")
        failed = bool(fault) or observation.get("is_error") is True or exited not in (None, 0, -1)
        text = fault or _text(observation.get("content")) or first_string(observation, "output", "error", "message")
        result = self._calls.result(stamp, string(event.get("tool_call_id")), text, failed=failed, tool=tool)
        return [result, *self._injected(_text(event.get("extended_content")), stamp)]

    def _foreign_call(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        """Return the call of another agent, which OpenHands runs, and its result. Each state is a separate event."""
        call, tool = string(event.get("tool_call_id")), first_string(event, "tool_kind", "title")
        arguments = event.get("raw_input")
        begun = call in self._calls.waiting
        turns = [] if begun else [self._calls.call(stamp, call, tool, arguments or string(event.get("title")))]
        if string(event.get("status")) not in {"completed", "failed"}:
            return turns or SkipReason.REPLACED
        output = event.get("raw_output")
        text = output if isinstance(output, str) else _text(event.get("content"))
        failed = event.get("is_error") is True or event["status"] == "failed"
        return [*turns, self._calls.result(stamp, call, text, failed=failed)]

    def _condensation(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(event.get("summary"), stamp)

    def _error(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        text = ": ".join(filter(None, (string(event.get("code")), string(event.get("detail")))))
        return self._injected(text, stamp, failed=True)

    # Events of versions before 1.0.

    def _old_message(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        text = clean(first_string(mapping(event.get("args")), "content") or string(event.get("message")))
        if string(event.get("source")) == "user":
            return self._prompt(text, stamp) if text else []
        return [*stamp.reply(Kind.PROSE, text, _reply(event)), *self._old_usage(event, stamp)]

    def _old_action(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        kind, arguments, group = string(event.get("action")), mapping(event.get("args")), _reply(event)
        thought = string(arguments.get("thought"))
        if kind == "think":
            return stamp.reply(Kind.THINKING, thought, group)
        if kind in {"finish", "reject"}:
            outputs = mapping(arguments.get("outputs"))
            said = first_string(arguments, "final_thought") or first_string(outputs, "content", "reason") or thought
            return stamp.reply(Kind.PROSE, said or string(event.get("message")), group)
        call = self._calls.call(stamp, _old_call(event, "id"), kind, _arguments(arguments), group=group)
        return [*stamp.reply(Kind.PROSE, thought, group), call, *self._old_usage(event, stamp)]

    def _old_result(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        extras, kind = mapping(event.get("extras")), string(event.get("observation"))
        exited = mapping(extras.get("metadata")).get("exit_code", extras.get("exit_code"))
        failed = exited not in (None, 0, -1) or event.get("success") is False or kind == "user_rejected"
        result = self._calls.result(
            stamp, _old_call(event, "cause"), string(event.get("content")), failed=failed, tool=kind
        )
        cwd = mapping(extras.get("metadata")).get("working_dir")
        return [result, *self._facts.note(stamp.line, Fact.CWD, cwd)]

    def _old_error(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        text, call = string(event.get("content")), _old_call(event, "cause")
        if call in self._calls.waiting:
            return [self._calls.result(stamp, call, text, failed=True)]
        return self._injected(text, stamp, failed=True)

    def _old_condensation(self, event: Record, stamp: RecordStamp) -> RecordEvents:
        return self._compacted(mapping(event.get("args")).get("summary"), stamp)

    def _old_usage(self, event: Record, stamp: RecordStamp) -> list[Note]:
        response = _response(event)
        used = usage(_reply(event) or stamp.record, *_tokens(mapping(response.get("usage"))))
        return self._facts.notes(stamp.line, {Fact.MODEL: response.get("model"), Fact.USAGE: used})


def _text(content: object) -> str:
    return joined_text(content, _block_text)


def _block_text(block: Record) -> str:
    return "[image]" * len(listing(block.get("image_urls"))) or string(block.get("text"))


def _arguments(arguments: Record) -> Record:
    return {
        name: value
        for name, value in arguments.items()
        if name not in _NOT_ARGUMENTS and value not in (None, "", False)
    }


def _tokens(counts: Record) -> tuple[int, int]:
    return total(counts, "prompt_tokens"), count_of(counts.get("completion_tokens"))


def _response(event: Record) -> Record:
    return mapping(mapping(event.get("tool_call_metadata")).get("model_response"))


def _reply(event: Record) -> str:
    return string(_response(event).get("id"))


def _old_call(event: Record, field: str) -> str:
    """Return the ID of a tool call, or else the number of its action."""
    return string(mapping(event.get("tool_call_metadata")).get("tool_call_id")) or str(count_of(event.get(field)))


class OpenHands(SplitFormat):
    """Conversations in `~/.openhands`, each in a folder. A sub-agent's folder is below that of its parent."""

    agent = "openhands"
    reader_class = OpenHandsReader
    suffixes = (".json", ".jsonl")
    main_files = (_STATE, _FIRST)
    parent_fields, folder_fields = ("parent",), ("working_dir",)

    def may_be_transcript(self, path: Path, root: Path) -> bool:
        """Return whether a file can be a saved trajectory. Files of a conversation's folder are excluded."""
        return super().may_be_transcript(path, root) and path.parent.name != _EVENTS and path.name != _STATE

    def locations(self) -> Iterable[tuple[Path, str]]:
        """Return the folders of conversations, with the state or the first event of each."""
        home = Path(os.environ.get("OPENHANDS_PERSISTENCE_DIR") or Path.home() / ".openhands").expanduser()
        newer = Path(os.environ.get("OPENHANDS_CONVERSATIONS_DIR") or home / "conversations").expanduser()
        for folder in (newer, home / "cloud" / "conversations"):
            yield from ((folder, f"{below}{_STATE}") for below in ("*/", f"*/{_SUBAGENTS}/*/"))
        for folder in (home / "sessions", Path.home() / ".openhands-state" / "sessions"):
            yield folder, f"*/{_EVENTS}/{_FIRST}"

    def is_container(self, path: Path) -> bool:
        """Return whether a file is the state or, before version 1.0, the first event of a conversation."""
        if path.name == _STATE:
            return (path.parent / _EVENTS).is_dir()
        return path.name == _FIRST and path.parent.name == _EVENTS

    def container_state(self, path: Path) -> int:
        """Return a fingerprint that changes whenever an event or the state is written. Raises `OSError`."""
        return fingerprint(*map(file_fingerprint, self.parts(path)))

    def parts(self, path: Path) -> Iterable[Path]:
        """Return the state or the first event, and the folder of the events."""
        return path, _events_folder(path)

    def session_id(self, path: Path) -> str:
        """Return the name of the conversation's folder."""
        return _events_folder(path).parent.name

    def session_lines(self, path: Path) -> Iterator[bytes]:
        """Yield the header, each event in order, and the token usage, which the state contains. Raises `OSError`."""
        folder = _events_folder(path).parent
        state = json_file(path) if path.name == _STATE else {}
        about = json_file(folder / "meta.json") or json_file(folder / "metadata.json")
        session_id = _id_of(folder)
        header = {
            "id": session_id,
            "parent": _id_of(folder.parents[1]) if folder.parent.name == _SUBAGENTS else "",
            "title": first_string(about, "title") or string(state.get("title")),
            "model": string(mapping(mapping(state.get("agent")).get("llm")).get("model")) or about.get("llm_model"),
            "working_dir": mapping(state.get("workspace")).get("working_dir"),
        }
        yield message_line(session_id, conversation=header)
        for event in sorted(_events_folder(path).glob("*.json"), key=_number):
            yield message_line(event.stem, message=exact_json(event.read_bytes()))
        used = mapping(state.get("stats"))
        if used and state.get("execution_status") != "running":
            yield message_line("usage", usage=used)

    def _is_from_agent(self, record: Record) -> bool:
        is_event = string(record.get("kind")).endswith("Event") and {"source", "timestamp"} <= record.keys()
        is_action = "action" in record and isinstance(record.get("args"), dict) and "source" in record
        return is_event or is_action or ("observation" in record and isinstance(record.get("extras"), dict))


def _id_of(folder: Path) -> str:
    return string(json_file(folder / _STATE).get("id")) or folder.name


def _events_folder(path: Path) -> Path:
    return path.parent / _EVENTS if path.name == _STATE else path.parent


def _number(event: Path) -> tuple[int, str]:
    """Return the number of an event, such as 7 for `7.json` and `event-00007-<id>.json`, and the file name."""
    digits = event.stem.removeprefix("event").strip("-_").replace("_", "-").partition("-")[0]
    return int(digits) if digits.isdecimal() else 0, event.name


FORMAT: ContainerFormat = OpenHands()
