"""Template environment, and the formatting functions of templates.

A user's template replaces the packaged template of the same name. The functions format labels of hits, dialogues,
changes to memories, the names in `palaver status`, and service files for systemd or launchd.

A dialogue shows the turns of an exchange as steps, with each tool result beside its call.
"""

import traceback
from base64 import b64encode
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct
from msgspec.structs import asdict, replace

from ..core.conversation import Exchange, Kind, Speaker, Turn, show_day, show_minute
from ..core.errors import TemplateInvalid
from ..core.memory import MemoryEvent, StoredMemory, state_label
from ..core.query import HitKind
from ..core.reports import dollars, encrypted_conversations, grouped, many, size
from ..core.results import ASIDE_MAX, Detail, Hit, StartedSubagent
from ..core.transcript_page import FileDiff
from . import quote
from .quote import brief, line

if TYPE_CHECKING:
    from jinja2 import BaseLoader, Environment

_SESSION: Final = "session"
"""Kind of a hit that represents a whole session."""
_PLURALS: Final[Mapping[str, tuple[str, str]]] = {
    _SESSION: ("session", "sessions"),
    HitKind.OBSERVATION: ("observation", "observations"),
    HitKind.EXCHANGE: ("exchange", "exchanges"),
    HitKind.MEMORY: ("memory", "memories"),
    HitKind.DOCUMENT: ("document passage", "document passages"),
    HitKind.CODE: ("code passage", "code passages"),
    HitKind.COMMAND: ("command", "commands"),
    HitKind.FIX: ("fix", "fixes"),
    HitKind.OPEN: ("open item", "open items"),
}
SESSIONS: Final = 3
"""Maximum number of other session IDs in a reply. Each costs about 25 tokens."""
_ID_TOKENS: Final = 40
OUTCOMES: Final = {
    "repeated": "copies of a line that is archived already, as after a resumed session",
    "replaced": "earlier versions of a message that a later line completes",
    "bookkeeping": "state of the agent's program",
    "context": "text that the agent's program sent to the model and you did not see",
    "copied-header": "headers of another session, copied by a fork",
    "empty": "messages without text",
    "encrypted": "reasoning that only the vendor can decrypt",
    "file-history": "snapshots of files",
    "forgotten": "deleted with `palaver forget`",
    "hook-output": "output of hooks",
    "hook-progress": "notices that a hook started",
    "progress": "output of running commands, which the results repeat",
    "queued": "queued prompts that a later line repeats",
    "search-progress": "state of running web searches, which the results repeat",
    "server-progress": "state of running MCP tools",
    "subagent": "messages of sub-agents, which are searched as conversations of their own",
    "waiting": "notices that the agent's program waits for a background task",
    "withdrawn": "queued prompts that you moved back into the input line",
    "own-folder": "sessions in the folder with Palaver's data",
    "own-run": "conversations that Palaver started",
    "own-tool": "calls of Palaver's tools, and their results",
    "own-recalled": "text that only quotes Palaver",
    "unknown-type": "records of types that Palaver does not read",
    "blank": "lines without text",
    "cut-short": "incomplete lines",
    "not-json": "lines that are not JSON",
    "not-an-object": "lines that are not a JSON object",
    "oversized": "lines that are too long to read",
    "too-deep": "lines that are nested too deeply",
}
"""Meaning of each reason why a line of a transcript is not searchable."""
STEPS: Final = {
    "archive": "archive transcripts",
    "observe": "extract observations by rules",
    "learn": "update the index in the background",
    "embed": "compute vectors",
    "publish": "publish the index",
    "compress": "compress old copies",
    "backup": "back up the database",
    "verify": "verify the database",
    "verify-backups": "verify the backups",
    "verify-copies": "verify the copies",
    "watch": "watch for changes",
}
"""Description of each step of background work."""
_TYPES: Final = 3
"""Maximum number of unknown record types to name."""
_LABELS = {
    (Speaker.HUMAN, Kind.PROMPT): "User",
    (Speaker.HOST, Kind.PROMPT): "Task",
    (Speaker.HOST, Kind.PROSE): "Sub-agent",
    (Speaker.HOST, Kind.CALL): "Sub-agent",
}
_FORMS = {Kind.CALL: "call", Kind.RESULT: "result", Kind.PROMPT: "prose", Kind.PROSE: "prose"}
_LISTED: Final = 12
"""Maximum number of names in a list."""
REPLACEABLE: Final = frozenset({"search.md.j2", "observations.md.j2", "read.md.j2"})
"""Templates that a user can replace: those of the three layers."""
_FAULTS = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError, OSError)
"""Errors of Python that can occur when a user's template is compiled or rendered."""
NAME = "palaver"
_SPECIAL: Final = frozenset("\"'\\$")
"""Characters that systemd accepts in arguments but not in the name of a program."""
_BY_SHELL: Final = ("/bin/sh", "-c", 'exec "$0" "$@"')


def counted(items: Sequence[Hit] | Sequence[Detail]) -> str:
    """Return the number of items of each kind, for example `2 observations, 1 exchange`."""
    counts = Counter(item.kind for item in items) or Counter({str(HitKind.OBSERVATION): 0})
    return ", ".join(many(counts[kind], *plurals) for kind, plurals in _PLURALS.items() if kind in counts)


def shared_kinds(counts: Mapping[str, int]) -> str:
    """Return numbers of items that are shared with a team, for example `2 sessions, 1 exchange`."""
    plurals = {**_PLURALS, "usage": ("day of usage", "days of usage"), "raw": ("full copy", "full copies")}
    unknown = "other item", "other items"
    return ", ".join(many(count, *plurals.get(kind, unknown)) for kind, count in counts.items())


def staying(stays: Mapping[str, int]) -> str:
    """Return numbers of exchanges by the reason why they stay here: `2 exchanges (sub-agent), 1 exchange (...)`."""
    shown = [f"{many(count, 'exchange')} ({line(reason)})" for reason, count in [*stays.items()][:_LISTED]]
    remaining = sum([*stays.values()][_LISTED:])
    return ", ".join([*shown, *([f"{many(remaining, 'exchange')} for other reasons"] if remaining else [])])


def plural_of(kinds: Sequence[str]) -> str:
    """Return the plural name of the kind that was searched, or `observations` if several kinds were searched."""
    return _PLURALS[HitKind(kinds[0]) if len(kinds) == 1 else HitKind.OBSERVATION][1]


def has_transcript(item: Hit | Detail) -> bool:
    """Return whether an item has a transcript to read. Memories and documents have no transcript."""
    return item.kind in (HitKind.OBSERVATION, HitKind.EXCHANGE, _SESSION)


def label(item: Hit | Detail) -> str:
    """Return the type of an observation or memory, or the kind of any other item."""
    kind, type_ = item.kind, item.type if isinstance(item, Hit) else item.observation.type
    if isinstance(item, Detail) and item.observation.is_summary:
        return _SESSION
    match kind:
        case HitKind.EXCHANGE:
            return "exchange"
        case HitKind.MEMORY:
            return f"{line(type_)} memory" if isinstance(item, Hit) else "memory"
        case HitKind.DOCUMENT | HitKind.CODE | "session":
            return kind
        case _:
            return line(type_)


def other_sessions(sessions: Sequence[str]) -> str:
    """Return the number and the first IDs of other sessions with the same text, or an empty text if there are none."""
    if not sessions:
        return ""
    named = ", ".join(brief(name, _ID_TOKENS) for name in sessions[:SESSIONS])
    return f"{many(len(sessions), 'session')}: {named}{', …' if len(sessions) > SESSIONS else ''}"


def outcomes(skipped: Mapping[str, int], repeated: int = 0) -> Iterator[tuple[int, str, str]]:
    """Yield the number of lines, the reason and its meaning, the most frequent reason first.

    All unknown record types together are one reason.
    """
    types = {reason.partition(":")[2]: count for reason, count in skipped.items() if reason.startswith("unknown-type")}
    named = [name for name in types if name]
    counts = {reason: count for reason, count in skipped.items() if not reason.startswith("unknown-type")}
    if repeated:
        counts["repeated"] = repeated
    if types:
        counts["unknown-type"] = sum(types.values())
    for reason, count in sorted(counts.items(), key=lambda item: -item[1]):
        meaning = OUTCOMES.get(reason, "")
        if reason == "unknown-type" and named:
            others = f" and {many(len(named) - _TYPES, 'other')}" if len(named) > _TYPES else ""
            meaning += f": {', '.join(named[:_TYPES])}{others}"
        yield count, reason, meaning


def step(name: str) -> str:
    """Return the description of a step, or its name if no description exists."""
    return STEPS.get(name, name)


class TurnText(Struct, frozen=True):
    """Beginning of the text of a turn, with the number of omitted characters."""

    text: str
    hidden: int
    line: int
    failed: bool = False


class Step(Struct, frozen=True):
    """One step of a dialogue.

    `form` is prose, call, result or aside (thinking or injected text).
    `label` is the name of the speaker, set only where the speaker changes.
    `rewound` is True on a branch that the user abandoned by rewinding.
    `subagents` are the sub-agents that a call started.
    """

    form: str
    said: TurnText
    label: str = ""
    tool: str = ""
    result: TurnText | None = None
    rewound: bool = False
    subagents: tuple[StartedSubagent, ...] = ()


def count_results(exchanges: Iterable[Exchange]) -> int:
    """Count the tool results in these exchanges."""
    return sum(turn.kind is Kind.RESULT for exchange in exchanges for turn in exchange.turns)


def dialogues(
    exchanges: Sequence[Exchange], limit: int | None, subagents: Mapping[str, tuple[StartedSubagent, ...]]
) -> list[tuple[Exchange, tuple[Step, ...]]]:
    """Return each exchange with its steps in order.

    A result is shown beside its call, even if it was recorded in a later exchange. Tool results have at most `limit`
    characters. With None, their length is not limited. `subagents` are the sub-agents by the ID of their call.
    """
    own = [
        _results(exchange, {turn.call for turn in exchange.turns if turn.kind is Kind.CALL}) for exchange in exchanges
    ]
    late = list[set[str]]()
    waiting: dict[str, dict[str, Turn]] = {}
    for exchange, answers in zip(exchanges, own, strict=True):
        answered = _results(exchange, waiting.keys())
        late.append(set(answered))
        for call, result in answered.items():
            waiting.pop(call)[call] = result
        waiting |= {
            turn.call: answers for turn in exchange.turns if turn.kind is Kind.CALL and turn.call not in answers
        }
    dialogue = [
        [_step(turn, answers, limit, subagents) for turn in _shown(exchange, answers.keys() | apart)]
        for exchange, answers, apart in zip(exchanges, own, late, strict=True)
    ]
    return [(exchange, tuple(_labelled(steps))) for exchange, steps in zip(exchanges, dialogue, strict=True)]


def _results(exchange: Exchange, calls: Collection[str]) -> dict[str, Turn]:
    """Return the results of these calls in an exchange, by the ID of the call."""
    return {turn.call: turn for turn in exchange.turns if turn.kind is Kind.RESULT and turn.call in calls}


def _shown(exchange: Exchange, apart: Collection[str]) -> Iterator[Turn]:
    """Yield the turns, except the results of the calls `apart`, which are shown beside their calls."""
    return (turn for turn in exchange.turns if turn.kind is not Kind.RESULT or turn.call not in apart)


def _step(
    turn: Turn,
    answers: dict[str, Turn],
    limit: int | None,
    subagents: Mapping[str, tuple[StartedSubagent, ...]],
) -> Step:
    form = _FORMS.get(turn.kind, "aside")
    most = {"call": limit, "result": limit, "aside": limit and ASIDE_MAX}.get(form)
    answer = answers.get(turn.call) if form == "call" else None
    return Step(
        form=form,
        said=_text(turn, most),
        label=turn.kind.value.capitalize() if form == "aside" else _LABELS.get((turn.speaker, turn.kind), "Assistant"),
        tool=turn.tool,
        result=None if answer is None else _text(answer, limit),
        rewound=not turn.active,
        subagents=subagents.get(turn.call, ()),
    )


def _labelled(unlabelled: Iterable[Step]) -> Iterator[Step]:
    """Yield the steps with a label only where the speaker changes, or where a rewound branch begins or ends."""
    previous = ("", False)
    for step in unlabelled:
        current = (step.label, step.rewound)
        yield step if current != previous or step.form == "aside" else replace(step, label="")
        previous = current


def _text(turn: Turn, limit: int | None) -> TurnText:
    # The text of a call begins with the name of its tool, which a step already has.
    text = turn.text.removeprefix(turn.tool).removeprefix(": ") if turn.kind is Kind.CALL else turn.text
    hidden = 0 if limit is None else max(len(text) - limit, 0)
    return TurnText(text[: len(text) - hidden], hidden, turn.line, turn.failed)


class Templates:
    """Templates by name, such as `search.md.j2`.

    A file in `user_folder` replaces the packaged template of the same name if it is one of `REPLACEABLE`, and runs in
    a sandbox. Values are never interpreted as templates. Jinja is loaded by the first call, so that a server starts
    fast.
    """

    def __init__(self, user_folder: Path | None) -> None:
        self._folder = user_folder

    @cached_property
    def _sandbox(self) -> "Environment":
        """Environment of the user's templates, and of the packaged ones that they include."""
        from jinja2 import ChoiceLoader, FileSystemLoader, FunctionLoader
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        internal = FunctionLoader(lambda name: None if name in REPLACEABLE else packaged(name))
        loader = ChoiceLoader([internal, FileSystemLoader(self._folder or ()), FunctionLoader(packaged)])
        return _with_filters(ImmutableSandboxedEnvironment(**_settings(loader)))

    def fill(self, name: str, values: Mapping[str, object]) -> str:
        """Return the rendered template.

        Raises:
            TemplateInvalid: A user's template is invalid. The message contains its file and line.
        """
        # Search the folder on each call, so that users can add templates while a server runs.
        folder = self._folder
        if folder is None or name not in REPLACEABLE or not (folder / name).is_file():
            return _trusted().get_template(name).render(values)
        from jinja2 import TemplateError

        try:
            return self._sandbox.get_template(name).render(values)
        except (TemplateError, *_FAULTS) as error:
            raise TemplateInvalid(
                f"{_location(error, folder, name)}: {error}",
                hint="Correct this template, or delete it to use the packaged one.",
            ) from error


def _location(error: Exception, folder: Path, name: str) -> str:
    """Return the location of an error as `file, line n`, from the traceback entries that Jinja adds."""
    from jinja2 import TemplateSyntaxError

    if isinstance(error, TemplateSyntaxError):
        return f"{error.filename or folder / name}, line {error.lineno}"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).parent == folder]
    return f"{frames[-1].filename}, line {frames[-1].lineno}" if frames else str(folder / name)


@cache
def packaged(name: str) -> str | None:
    """Return the source text of a packaged template, or None if no such template exists."""
    source = files("palaver.templates") / name
    return source.read_text("utf-8") if source.is_file() else None


def _settings(loader: "BaseLoader") -> dict[str, Any]:
    from jinja2 import StrictUndefined

    # Autoescape is for HTML. The filters of `quote` make stored text safe as Markdown.
    return {
        "loader": loader,
        "autoescape": False,
        "undefined": StrictUndefined,
        "trim_blocks": True,
        "keep_trailing_newline": False,
    }


@cache
def _trusted() -> "Environment":
    """Return the environment of the packaged templates, which all renderers share. Compiling a template is slow."""
    from jinja2 import Environment, FunctionLoader

    return _with_filters(Environment(**_settings(FunctionLoader(packaged))))  # noqa: S701 - markdown, not HTML


def compile_all() -> None:
    """Compile all packaged templates, so that a process that is forked from this one needs no time for it."""
    for file in files("palaver.templates").iterdir():
        if file.name.endswith(".j2"):
            _trusted().get_template(file.name)


def _with_filters(environment: "Environment") -> "Environment":
    environment.filters.update(_FILTERS)
    return environment


def _excerpt(part: TurnText, *, is_code: bool = False) -> str:
    text = quote.block(part.text, is_code=is_code)
    return f"{text}\n[{part.hidden:,} more characters: line {part.line}]" if part.hidden else text


def _beside(part: TurnText) -> str:
    """Format a tool call or its output. A single line follows its label, several lines are placed below the label."""
    text = _excerpt(part, is_code=True)  # A code fence is only recognised at the beginning of a line.
    return "\n" + indent(text, "  ") if "\n" in text else f" {text}"


def _codes(names: Sequence[str], most: int = _LISTED) -> str:
    """Return the first `most` names as inline code, followed by the number of the other names."""
    listed = ", ".join(map(quote.code, names[:most]))
    return f"{listed} and {len(names) - most:,} more" if len(names) > most else listed


def _files(paths: Sequence[str], verb: str, most: int = _LISTED) -> str:
    return f"{_codes(paths, most)} ({verb})" if paths else ""


def _base64(data: bytes) -> str:
    return b64encode(data).decode()


def _quotation(text: str) -> str:
    return indent(text, "> ", lambda _: True)


def _yaml(value: object) -> str:
    """Format a value for YAML, of which JSON is a part."""
    return orjson.dumps(value).decode()


def _diff_text(diff: FileDiff) -> str:
    """Format the changes of a file as the lines of a diff, after its path."""
    rows = [f"{diff.path}:", *(f"{row.sign}{row.text}" if row.sign != "@" else f"@@ {row.text}" for row in diff.lines)]
    return "\n".join([*rows, f"{diff.hidden:,} more lines"] if diff.hidden else rows)


_FILTERS: Mapping[str, Any] = {
    "also_in": other_sessions,
    "base64": _base64,
    "beside": _beside,
    "block": quote.block,
    "brief": quote.brief,
    "code": quote.code,
    "codes": _codes,
    "counted": counted,
    "day": show_day,
    "diff_text": _diff_text,
    "dollars": dollars,
    "encrypted_conversations": encrypted_conversations,
    "excerpt": _excerpt,
    "fenced": quote.fenced,
    "files": _files,
    "grouped": grouped,
    "has_transcript": has_transcript,
    "inert": quote.inert,
    "label": label,
    "line": quote.line,
    "linked": quote.link_text,
    "many": many,
    "marked": quote.marked,
    "around": quote.text_around,
    "minute": show_minute,
    "outcomes": outcomes,
    "quoted": _quotation,
    "shared_kinds": shared_kinds,
    "staying": staying,
    "size": size,
    "state_label": state_label,
    "step": step,
    "unlinked": quote.unlinked,
    "yaml": _yaml,
}


def changes(stored: StoredMemory, events: Sequence[MemoryEvent]) -> Iterator[tuple[MemoryEvent, str, str]]:
    """Yield each event with the names of the fields that it changed, and the previous content if the content changed.

    `events` are the latest events of this memory, newest first and without gaps.
    """
    # Convert through JSON, because events store the earlier values as JSON.
    after: dict[str, Any] = orjson.loads(orjson.dumps({**asdict(stored.memory), "confidence": stored.stats.confidence}))
    for event in events:
        if not event.before:
            yield event, "", ""
            continue
        before: dict[str, Any] = orjson.loads(event.before)
        names = [name for name in after if name in before and before[name] != after[name]]
        yield event, ", ".join(names), str(before["content"]) if "content" in names else ""
        after = before


def undo_command(memory_ids: Sequence[str]) -> str:
    """Return the command that restores these memories or undoes their last edits."""
    return f"palaver memories undo {' '.join(memory_ids)}"


def systemd_unit(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a unit file for `systemctl --user`. See systemd.service(5) and systemd.exec(5)."""
    if _SPECIAL.intersection(command[0]):
        command = [*_BY_SHELL, *command]
    words = [_quoted(word).replace("$", "$$") for word in command]
    settings = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in environment.items())
    return f"""[Unit]
Description=Palaver archives conversations with coding agents

[Service]
Type=exec
ExecStart={" ".join(words)}
{settings}Restart=on-failure
RestartSec=10
TimeoutStopSec=10
Nice=10
UMask=0077

[Install]
WantedBy=default.target
"""


def launchd_agent(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a property list for `launchctl`. See launchd.plist(5)."""
    agent = {
        "Label": NAME,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        "Umask": 0o077,
    }
    import plistlib  # loads an XML parser, which no other output needs

    return plistlib.dumps(agent, sort_keys=False).decode()


def _quoted(word: str) -> str:
    """Return a word with systemd quoting. Bytes that are not UTF-8 are kept."""
    data = word.encode("utf-8", "surrogateescape")
    return '"' + "".join(_escaped(byte) for byte in data) + '"'


def _escaped(byte: int) -> str:
    letter = chr(byte)
    if letter in {'"', "\\"}:
        return f"\\{letter}"
    if letter == "%":
        return "%%"
    return letter if letter.isprintable() and byte < 0x7F else f"\\x{byte:02x}"
