"""Reads the lines of a Codex rollout, of every version, into turns and notes.

Codex keeps two accounts of a session in one file: items, which are what the model was told and said, and events, which
are what the person saw. Each tells most things a second time. What a person typed is taken from whichever tells it
first; of what the model said and its tools answered, the items are the better account.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ....core.conversation import Fact, Kind, Note, Session, SessionKind, Skipped, Speaker, Turn
from ...files.clipping import clean, one_line
from ...files.lines import Line, Record, records
from ..actions import UNKNOWN, Action, action, said
from ..echoes import Echoes
from ..given import BOOKKEEPING, CONTEXT, COPIED_HEADER, EMPTY, REPEATED, Given, of_records, unknown
from ..json_values import instant, listing, mapping, string, whole
from ..marks import Facts, Mark, identity
from ..prompts import Accounts, Prompts
from .codex_envelopes import arguments, call_id, opened, parent_of, tool_name, without_history
from .codex_prompts import is_envelope, request, shell_command, without_pictures
from .codex_tools import (
    Answer,
    answer,
    command_answer,
    content_text,
    found_on_web,
    mcp_answer,
    offered_tools,
    picture,
    review,
)

ENCRYPTED = "encrypted"

_TITLE_RANK = 3
_REVIEWED = "review_rollout"
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
    "state", "world_state", "inter_agent_communication_metadata",
}  # fmt: skip


class CodexReader:
    """Reads one file.

    What it remembers of earlier lines never reaches over the start of an exchange, except for facts of the whole
    session: reading may begin at any exchange and gives the same turns.
    """

    def __init__(self, session: Session, *, shorten: bool) -> None:
        self._session, self._shorten = session, shorten
        self._facts = Facts(session)
        self._echoes = Echoes()
        self._actions: dict[str, Action] = {}
        self._accounts = Accounts()
        self._prompts = Prompts()
        self._thoughts: set[str] = set()
        self._reviewing = False
        self._handlers: dict[str, Callable[[Record, Mark], Given]] = {
            "session_meta": self._header,
            "turn_context": self._context,
            "compacted": self._compaction,
            **self._item_handlers(),
            **self._event_handlers(),
        }

    def _item_handlers(self) -> dict[str, Callable[[Record, Mark], Given]]:
        return {
            "response_item/message": self._message,
            "response_item/agent_message": self._between_agents,
            "response_item/reasoning": self._reasoning,
            "response_item/function_call": self._call,
            "response_item/custom_tool_call": self._call,
            "response_item/local_shell_call": self._call,
            "response_item/tool_search_call": self._call,
            "response_item/web_search_call": self._call,
            "response_item/image_generation_call": self._call,
            "response_item/function_call_output": self._output,
            "response_item/custom_tool_call_output": self._output,
            "response_item/tool_search_output": self._output,
        }

    def _event_handlers(self) -> dict[str, Callable[[Record, Mark], Given]]:
        return {
            "event_msg/user_message": self._typed,
            "item/UserMessage": self._typed,
            "event_msg/agent_message": self._prose_again,
            "item/AgentMessage": self._prose_again,
            "item/Plan": self._prose_again,
            "event_msg/agent_reasoning": self._thought_again,
            "event_msg/agent_reasoning_raw_content": self._thought_again,
            "item/Reasoning": self._thought_again,
            "event_msg/exec_command_end": self._command_end,
            "item/CommandExecution": self._command_end,
            "event_msg/mcp_tool_call_end": self._mcp_end,
            "item/McpToolCall": self._mcp_end,
            "event_msg/patch_apply_end": self._patched,
            "item/FileChange": self._patched,
            "event_msg/web_search_end": self._web_results,
            "item/WebSearch": self._web_results,
            "item/Extension": self._web_results,
            "item/HookPrompt": self._hook_prompt,
            "event_msg/entered_review_mode": self._review_begins,
            "event_msg/exited_review_mode": self._review_ends,
            "event_msg/thread_rolled_back": self._rolled_back,
            "event_msg/thread_name_updated": self._title,
            "event_msg/token_count": self._usage,
            "event_msg/turn_aborted": self._notice,
            "event_msg/error": self._notice,
            "event_msg/stream_error": self._notice,
            "event_msg/warning": self._notice,
        }

    def read(self, lines: Iterable[Line]) -> Iterator[Turn | Note | Skipped]:
        """The events of the lines, in order; what is told twice comes once it is known which telling to keep."""
        return self._echoes.among(map(self._line, self._prompts.following(lines)))

    def _line(self, line: Line) -> Sequence[Turn | Note | Skipped]:
        found = without_history(line) or records(line)
        self._echoes.alone = len(found) == 1
        return of_records(line, found, self._record)

    def _record(self, record: Record, line: Line) -> Given:
        key, payload = opened(record)
        handler = self._handlers.get(key)
        if handler is None:
            return BOOKKEEPING if key in _BOOKKEEPING else unknown(key)
        named = string(payload.get("id")) or string(payload.get("call_id")) or string(payload.get("client_id"))
        at = instant(record.get("timestamp") or record.get("created_at") or payload.get("timestamp"))
        return handler(payload, Mark(line.number, at, f"{key}:{identity(named, line.data)}"))

    # What the session is

    def _header(self, payload: Record, mark: Mark) -> Given:
        native_id = string(payload.get("id"))
        if native_id and native_id != self._session.native_id:
            return COPIED_HEADER
        learn = self._facts.learn
        return [
            *learn(mark.line, Fact.SESSION, native_id),
            *learn(mark.line, Fact.PARENT, parent_of(payload)),
            *learn(mark.line, Fact.VERSION, string(payload.get("cli_version"))),
            *learn(mark.line, Fact.CWD, string(payload.get("cwd"))),
            *learn(mark.line, Fact.BRANCH, string(mapping(payload.get("git")).get("branch"))),
        ] or REPEATED

    def _context(self, payload: Record, mark: Mark) -> Given:
        learn = self._facts.learn
        return [
            *learn(mark.line, Fact.MODEL, string(payload.get("model"))),
            *learn(mark.line, Fact.CWD, string(payload.get("cwd"))),
        ] or REPEATED

    def _title(self, payload: Record, mark: Mark) -> Given:
        name = one_line(string(payload.get("thread_name")))
        return self._facts.learn(mark.line, Fact.TITLE, name, rank=_TITLE_RANK) or REPEATED

    def _usage(self, payload: Record, mark: Mark) -> Given:
        """The count is repeated whenever the limits change; the running total tells replies apart."""
        info = mapping(payload.get("info"))
        last, total = mapping(info.get("last_token_usage")), mapping(info.get("total_token_usage"))
        given, made = whole(last.get("input_tokens")), whole(last.get("output_tokens"))
        text = f"{whole(total.get('total_tokens'))} {given} {made}" if given or made else ""
        return self._facts.learn(mark.line, Fact.USAGE, text) or BOOKKEEPING

    def _compaction(self, payload: Record, mark: Mark) -> Given:
        return [
            mark.turn(Speaker.HOST, Kind.COMPACTION, clean(string(payload.get("message"))) or "Conversation compacted")
        ]

    def _rolled_back(self, payload: Record, mark: Mark) -> Given:
        return self._prompts.take_back(mark.line, whole(payload.get("num_turns"))) or BOOKKEEPING

    def _notice(self, payload: Record, mark: Mark) -> Given:
        text = string(payload.get("message")) or string(mapping(payload.get("error")).get("message"))
        reason = string(payload.get("reason"))
        return [
            mark.injected(text or f"Turn aborted: {reason or 'no reason given'}", shorten=self._shorten, failed=True)
        ]

    # What a person typed

    def _message(self, payload: Record, mark: Mark) -> Given:
        role, content = payload.get("role"), payload.get("content") or payload.get("message")
        if role == "user":
            return self._user_item([{"text": content}] if isinstance(content, str) else listing(content), mark)
        if role != "assistant":
            return CONTEXT
        text = clean(content_text(content))
        if not text:
            return EMPTY
        self._echoes.hear(_words("prose", text))
        if string(payload.get("id")).startswith(_REVIEWED):
            self._echoes.hear(_REVIEWED)
        return [mark.turn(Speaker.ASSISTANT, Kind.PROSE, text)]

    def _user_item(self, content: Sequence[object], mark: Mark) -> Given:
        blocks = [mapping(block) for block in content]
        texts = [text for block in blocks if (text := without_pictures(clean(string(block.get("text")))))]
        typed = [text for text in texts if not is_envelope(text, told_apart=False)]
        ran = shell_command(texts[0]) if texts else None
        if ran is not None:
            return self._ran(ran, mark)
        if texts and not typed:
            return [mark.injected("\n".join(texts), shorten=self._shorten)]
        pictures = "\n".join(filter(None, (content_text([block]) for block in blocks if "text" not in block)))
        return self._ask("item", "\n".join(typed), pictures, mark)

    def _typed(self, payload: Record, mark: Mark) -> Given:
        blocks = [mapping(block) for block in listing(payload.get("content"))]
        text = clean(string(payload.get("message")) or "\n".join(string(block.get("text")) for block in blocks))
        addresses = [*listing(payload.get("images")), *listing(payload.get("local_images"))]
        pictures = [picture(string(address)) for address in addresses]
        pictures += [content_text([block]) for block in blocks if string(block.get("type")) in {"image", "local_image"}]
        by_program = string(payload.get("kind")) in {"environment_context", "user_instructions"}
        if by_program or self._reviewing or is_envelope(text, told_apart=True):
            return [mark.injected(text, shorten=self._shorten)]
        return self._ask("event", text, "\n".join(filter(None, pictures)), mark)

    def _ask(self, account: str, text: str, pictures: str, mark: Mark) -> Given:
        """A prompt, unless the other account of the session has told it already."""
        words = without_pictures(text)
        if self._accounts.repeats(words, of="event" if account == "item" else "item"):
            return REPEATED
        shown = "\n".join(filter(None, (request(text), pictures)))
        if not shown:
            return EMPTY
        prompt = self._open(shown, mark)
        self._accounts.tell(account, words)
        return prompt

    def _open(self, text: str, mark: Mark) -> Given:
        """Forget what belongs to the exchange that ends here."""
        self._echoes.settle()
        self._actions.clear()
        self._accounts.clear()
        self._thoughts.clear()
        self._reviewing = False
        self._prompts.add(mark.line)
        speaker = Speaker.HOST if self._session.kind is SessionKind.SUBAGENT else Speaker.HUMAN
        return [mark.turn(speaker, Kind.PROMPT, text), *self._facts.place(mark.line)]

    def _between_agents(self, payload: Record, mark: Mark) -> Given:
        """A message of another agent; from above it is a task, from below a report."""
        author, recipient = string(payload.get("author")), string(payload.get("recipient"))
        text = clean(content_text(payload.get("content")))
        if not text:
            return ENCRYPTED
        if self._session.kind is SessionKind.SUBAGENT and recipient.startswith(f"{author}/"):
            return self._open(text, mark)
        return [mark.injected(text, shorten=self._shorten)]

    def _ran(self, command: tuple[str, str], mark: Mark) -> Given:
        end = answer(command[1])
        text = said(end.text, UNKNOWN, failed=end.failed, shorten=self._shorten)
        return [
            mark.turn(Speaker.HUMAN, Kind.CALL, f"! {command[0]}", tool="shell", call=mark.record),
            mark.turn(Speaker.TOOL, Kind.RESULT, text, tool="shell", call=mark.record, failed=end.failed),
        ]

    def _hook_prompt(self, payload: Record, mark: Mark) -> Given:
        text = clean("\n".join(string(mapping(part).get("text")) for part in listing(payload.get("fragments"))))
        return [mark.injected(text, shorten=self._shorten)] if text else EMPTY

    def _review_begins(self, payload: Record, mark: Mark) -> Given:
        """A person asks for a review with a command; the sentence that follows is the program's."""
        wanted = string(mapping(payload.get("target")).get("instructions")) or string(payload.get("user_facing_hint"))
        prompt = self._open(f"/review {clean(wanted or string(payload.get('prompt')))}".strip(), mark)
        self._reviewing = True
        return prompt

    def _review_ends(self, payload: Record, mark: Mark) -> Given:
        self._reviewing = False
        text = clean(review(mapping(payload.get("review_output"))))
        return self._echoes.give(_REVIEWED, mark.turn(Speaker.ASSISTANT, Kind.PROSE, text)) if text else EMPTY

    # What the model said and did

    def _reasoning(self, payload: Record, mark: Mark) -> Given:
        texts = [clean(string(mapping(part).get("text"))) for part in listing(payload.get("summary"))]
        texts = list(filter(None, texts)) or list(filter(None, [clean(content_text(payload.get("content")))]))
        for text in texts:
            self._echoes.hear(_words("thought", text))
        # Some versions repeat in each summary what the ones before it said.
        new = [text for text in texts if text not in self._thoughts]
        self._thoughts.update(new)
        if not new:
            return REPEATED if texts else ENCRYPTED
        return [mark.turn(Speaker.ASSISTANT, Kind.THINKING, "\n\n".join(new))]

    def _prose_again(self, payload: Record, mark: Mark) -> Given:
        text = string(payload.get("message")) or string(payload.get("text")) or content_text(payload.get("content"))
        return self._again("prose", Kind.PROSE, text, mark)

    def _thought_again(self, payload: Record, mark: Mark) -> Given:
        parts = [*listing(payload.get("summary_text")), *listing(payload.get("raw_content"))]
        text = string(payload.get("text")) or "\n\n".join(map(string, parts))
        return self._again("thought", Kind.THINKING, text, mark)

    def _again(self, voice: str, kind: Kind, text: str, mark: Mark) -> Given:
        text = clean(text)
        return self._echoes.give(_words(voice, text), mark.turn(Speaker.ASSISTANT, kind, text)) if text else EMPTY

    def _call(self, payload: Record, mark: Mark) -> Given:
        call = string(payload.get("call_id")) or string(payload.get("id"))
        made = action(tool_name(payload), arguments(payload), shorten=self._shorten)
        self._actions[call] = made
        return [mark.turn(Speaker.ASSISTANT, Kind.CALL, made.text, tool=made.tool, call=call)]

    def _output(self, payload: Record, mark: Mark) -> Given:
        call = string(payload.get("call_id"))
        made = self._actions.get(call, UNKNOWN)
        end = Answer(offered_tools(payload)) if "tools" in payload else answer(payload.get("output"))
        turn = self._result(mark, call, made, end, made.writes)
        if made.writes:
            # The event names the files that were changed in the end.
            return self._echoes.give(call, turn)
        self._echoes.hear(call)
        return [turn]

    def _command_end(self, payload: Record, mark: Mark) -> Given:
        call = call_id(payload)
        return self._echoes.give(
            call, self._result(mark, call, Action("exec_command", ""), command_answer(payload), ())
        )

    def _mcp_end(self, payload: Record, mark: Mark) -> Given:
        call, place = call_id(payload), mapping(payload.get("invocation")) or payload
        tool = f"mcp__{string(place.get('server'))}__{string(place.get('tool'))}"
        return self._echoes.give(call, self._result(mark, call, Action(tool, ""), mcp_answer(payload), ()))

    def _patched(self, payload: Record, mark: Mark) -> Given:
        call, changes = call_id(payload), mapping(payload.get("changes"))
        named = [*changes, *(string(mapping(change).get("move_path")) for change in changes.values())]
        failed = payload.get("success") is False or payload.get("status") in ("failed", "declined")
        printed = [string(payload.get("stdout")), string(payload.get("stderr"))]
        end = Answer("\n".join(filter(None, printed)), failed)
        paths = tuple(clean(path) for path in named if path)
        self._echoes.hear(call)
        return [self._result(mark, call, Action("apply_patch", "", writes=paths), end, paths)]

    def _web_results(self, payload: Record, mark: Mark) -> Given:
        text = clean(found_on_web(payload))
        return [self._result(mark, call_id(payload), Action("web_search", ""), Answer(text), ())] if text else REPEATED

    def _result(self, mark: Mark, call: str, made: Action, end: Answer, writes: tuple[str, ...]) -> Turn:
        text = said(end.text, made, failed=end.failed, shorten=self._shorten)
        reads, writes = ((), ()) if end.failed else (made.reads, writes)
        return mark.turn(
            Speaker.TOOL, Kind.RESULT, text, tool=made.tool, call=call, failed=end.failed, reads=reads, writes=writes
        )


def _words(voice: str, text: str) -> str:
    return f"{voice} {' '.join(text.split())}"
