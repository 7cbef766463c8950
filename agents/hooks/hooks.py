"""Hooks of coding agents at the start of a session, on a prompt, and before a shell command or an edit.

- Start of a session: approved rules, and what is open from the last session in the folder.
- Prompt: the observations of the project that are relevant to the prompt.
- Shell command or edit: one line about earlier failures of this command or after such edits.

An answer contains the text to inject, within a budget, and its entry in the log of injections.

An agent writes the call of a hook to standard input as a JSON object. Claude Code, Codex and Gemini CLI use the same
fields. docs/plugin.md names their documentation. The object is checked by hand, because loading pydantic would double
the time that a hook takes.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import chain
from pathlib import Path, PurePath
from typing import Final, Protocol

import orjson
from msgspec import Struct

from ...archiver.formats.json_values import first_string, mapping, string
from ...archiver.store import Store
from ...core.conversation import Milliseconds, Origin, now
from ...core.home import is_in_project, main_worktree, root_of
from ...core.hooks import GEMINI, HookEvent
from ...core.query import HitKind, Query
from ...core.reports import Injection
from ...core.results import DigestLine, DigestSection, Hit
from ...core.tokens import count
from ...observe.archive import Archive
from ...observe.memory import SessionContext
from ...observe.memory.session_context import last_session
from ...templates.render import Renderer

INPUT_MAX: Final = 1 << 20
"""Maximum bytes of the JSON object. A hook ignores a longer object."""
_PROMPT_MAX: Final = 2_000
"""Number of characters at the start of a prompt that are used as a search query."""
_LINE_MAX: Final = 4_000
_PATCHED: Final = re.compile(r"^\*\*\* (?:Update|Add) File: (.+?)\s*$", re.MULTILINE)
"""Pattern for a file name in a patch of Codex's tool `apply_patch`."""
_GEMINI_PROMPT: Final = HookEvent.PROMPT.hook.names[GEMINI]


class HookCall(Struct, frozen=True):
    """Call of a hook.

    Attributes:
        name: Name of the event in the agent's protocol. The reply repeats it.
        source: Reason for the start of a session: `startup`, `resume`, `clear` or `compact`.
        command: Shell command that the agent is about to run.
        file: File that the agent is about to edit. For a patch, this is its first file.
    """

    event: HookEvent
    name: str
    session_id: str
    cwd: str
    source: str = ""
    prompt: str = ""
    command: str = ""
    file: str = ""

    @classmethod
    def parse(cls, event: HookEvent, data: bytes) -> "HookCall | None":
        """Return the call, or None if the data is too long, not a JSON object, or without an absolute path in `cwd`."""
        if len(data) > INPUT_MAX:
            return None
        try:
            fields = mapping(orjson.loads(data))
        except orjson.JSONDecodeError:
            return None
        session_id, cwd = string(fields.get("session_id")), string(fields.get("cwd"))
        if "\0" in cwd or len(cwd) > _LINE_MAX or not PurePath(cwd).is_absolute():
            return None
        name, tool = string(fields.get("hook_event_name")), mapping(fields.get("tool_input"))
        prompt = string(fields.get("prompt"))
        if name == _GEMINI_PROMPT:  # without a terminal, Gemini CLI puts the text of an earlier hook before the prompt
            from ...archiver.formats.gemini import split_added  # other agents' hooks do not need it

            prompt, _ = split_added(prompt)
        command, file = string(tool.get("command")), first_string(tool, "file_path", "notebook_path")
        if patched := _PATCHED.search(command):
            command, file = "", str(PurePath(cwd, patched[1]))
        names = [*event.hook.names.values()]
        return cls(
            event,
            name if name in names else names[0],
            session_id[:_LINE_MAX],
            cwd,
            string(fields.get("source")),
            prompt[:_PROMPT_MAX],
            command if len(command) <= _LINE_MAX else "",
            file if len(file) <= _LINE_MAX else "",
        )

    def reply(self, text: str) -> str:
        """Return the JSON line that makes the agent add a text to the session."""
        output = {"hookEventName": self.name, "additionalContext": text}
        return orjson.dumps({"hookSpecificOutput": output}).decode()


_LINE_TOKENS: Final = 60


class HookAnswer(Struct, frozen=True):
    """Text to inject, and the IDs of the items in it."""

    text: str = ""
    items: tuple[str, ...] = ()


class QuotedLine(Struct, frozen=True):
    """One line to inject about an item of the archive, with the item's ID and time."""

    id: str
    at: Milliseconds | None
    text: str


class HookPlace(Struct, frozen=True):
    """Archive, project and session for which a hook was called.

    Attributes:
        namespace: Namespace of the project.
        root: Folder of the project.
        shown: IDs of the items that hooks already injected into the session.
        at: Time of the call. None means the current time.
    """

    archive: Archive
    namespace: str
    root: Path
    shown: frozenset[str] = frozenset()
    at: Milliseconds | None = None


class Selector(Protocol):
    """Function that selects the text for the call of a hook."""

    def __call__(self, call: HookCall, place: HookPlace, /) -> HookAnswer:
        """Return the text, or an empty answer if nothing is relevant."""
        ...


def answer(call: HookCall, archive: Archive, select: Selector, clock: Callable[[], Milliseconds] = now) -> str:
    """Return the text that the hook injects, and record it in the archive. The text is empty if nothing is relevant.

    The text is also empty if no archive exists, the event is not in `hooks`, or the project is in `hooks_off`. In
    read-only mode, and if the home cannot be written, nothing is recorded.

    Raises:
        PalaverError: The archive cannot be read or written.
    """
    if call.event not in archive.config.hooks or not archive.home.has_database:
        return ""
    with archive:
        store = archive.store
        namespace = store.projects.namespace(Path(call.cwd))
        if _is_off(store, archive.config.hooks_off, call.cwd, namespace):
            return ""
        earlier = store.injections.of_session(call.session_id) if call.session_id else []
        if call.event is HookEvent.SESSION_START and call.source == "resume" and earlier:
            return ""  # The transcript of the session already contains the text.
        root = root_of(Path(call.cwd))
        selected = select(call, HookPlace(archive, namespace, root, _shown(earlier), clock()))
        if not selected.text or count(selected.text) > call.event.hook.budget:
            return ""
        if not store.is_read_only:
            entry = Injection(clock(), call.event, call.session_id, namespace, count(selected.text), selected.items)
            with store.transaction():
                store.injections.add(entry)
        return selected.text


def quoted(place: HookPlace, lead: str, lines: Sequence[QuotedLine], budget: int) -> HookAnswer:
    """Return the sentence `lead` and as many of the first lines as the budget allows, between quotation markers."""
    renderer = Renderer(place.archive.home.templates, at_shell=True)
    for number in range(len(lines), 0, -1):
        text = renderer.fill("hook_lines", lead=lead, lines=lines[:number], line_tokens=_LINE_TOKENS)
        if count(text) <= budget:
            return HookAnswer(text, tuple(line.id for line in lines[:number]))
    return HookAnswer()


def _shown(earlier: Sequence[Injection]) -> frozenset[str]:
    """Return the IDs of the items that were injected since the session last started or was compacted."""
    starts = [position for position, injection in enumerate(earlier) if injection.event is HookEvent.SESSION_START]
    return frozenset(item for injection in earlier[starts[-1] if starts else 0 :] for item in injection.items)


def _is_off(store: Store, projects: Collection[str], cwd: str, namespace: str) -> bool:
    """Return whether `projects` contains the project's name, its folder or a parent of its folder."""
    names = {name for name in projects if "/" not in name}
    return any(namespace in store.projects.namesakes(name) for name in names) or is_in_project(
        [*{*projects} - names], "", cwd, str(main_worktree(root_of(Path(cwd))))
    )


SCORE_MIN: Final = 0.25
"""Minimum score of a hit. See bench/RESULTS.md, "Injection"."""
_PROMPT_LEAD: Final = "Past sessions of this project that may help, found by Palaver (details: `palaver show ID`)."
_HITS: Final = 3
_WORDS_MIN: Final = 4
"""Minimum number of words in a prompt for a search. Shorter prompts, such as "go on", name no topic."""
_OPERATORS: Final = re.compile(r'["“”„*`]')


def prompt_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return up to three observations that are relevant to the prompt and were not injected into the session yet."""
    lines = [QuotedLine(hit.id, hit.at, hit.title) for hit in relevant_hits(call, place) if hit.score >= SCORE_MIN]
    return quoted(place, _PROMPT_LEAD, lines[:_HITS], call.event.hook.budget)


def relevant_hits(call: HookCall, place: HookPlace) -> list[Hit]:
    """Return the observations of other sessions of the project that are most similar to a prompt, best first."""
    text = " ".join(_OPERATORS.sub(" ", call.prompt).split())
    if len(text.split()) < _WORDS_MIN or text.startswith("/"):
        return []
    project = place.archive.search.project_at(place.root)
    if not project:
        return []
    query = Query.parse(
        text,
        limit=2 * _HITS,
        weak=True,
        projects=[project],
        kinds=[HitKind.OBSERVATION],
        origins=[Origin.HUMAN, Origin.ASSISTANT],
    )
    hits = place.archive.search.find(query, snippets=False).hits
    return [hit for hit in hits if hit.session_id != call.session_id and hit.id not in place.shown]


LAST_TITLE: Final = "Last Session"
_RULES: Final = 150
"""Maximum tokens of the approved rules, in addition to those of the page without them."""


def session_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return the memories that the user approved, and the open items of the last session in the folder.

    The calling session is not the last session. After a compaction it can be in the archive, but its card is already
    in the agent's context.
    """
    renderer, text = Renderer(place.archive.home.templates, at_shell=True), ""
    last = last_session(place.archive.store, place.namespace, Path(call.cwd), call.session_id, place.at)

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer.memory_context(sections, chosen.left_out, chosen.contradictions, _digest(last))
        return sum(count(stored.memory.content) for _, memories in sections for stored in memories)

    chosen = place.archive.memories.contexts.select(cost, place.namespace, budget=_RULES, past=False)
    if chosen.is_empty and last is None:
        return HookAnswer()
    memories = (stored.id for section in chosen.sections for stored in section.memories)
    return HookAnswer(text, tuple(chain(memories, [last.id] if last else [])))


def _digest(last: DigestLine | None) -> tuple[DigestSection, ...]:
    return (DigestSection(LAST_TITLE, (last,)),) if last else ()


_TOOL_LEAD: Final = "From past sessions of this project (details: `palaver show ID`)."


def tool_text(call: HookCall, place: HookPlace) -> HookAnswer:
    """Return one line about a known failure of the command, or of checks that followed edits of the file.

    Each line is shown once per session.
    """
    from ...observe.commands import known_fixes  # loads the rules, which no other hook needs

    root = str(place.root)
    sessions = known_fixes.latest_sessions(place.archive.store, place.namespace) if call.command or call.file else []
    if call.command:
        failure, least = (
            known_fixes.command_cost(place.archive.store, sessions, call.command, root),
            known_fixes.SIMILARITY_MIN,
        )
    elif call.file:
        failure, least = (
            known_fixes.file_cost(place.archive.store, sessions, call.file, root),
            known_fixes.FAILED_SHARE_MIN,
        )
    else:
        return HookAnswer()
    if failure is None or failure.strength < least or failure.id in place.shown:
        return HookAnswer()
    return quoted(place, _TOOL_LEAD, [QuotedLine(failure.id, failure.at, failure.text)], call.event.hook.budget)


SELECTORS: Final[Mapping[HookEvent, Selector]] = {
    HookEvent.SESSION_START: session_text,
    HookEvent.PROMPT: prompt_text,
    HookEvent.TOOL: tool_text,
}
"""Function that selects the text for each event."""
