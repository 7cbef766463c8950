"""Answer to the call of a hook: the text to inject, within a budget, and its entry in the log of injections."""

from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from ...archiver.store import Store
from ...core.clock import now
from ...core.config import Config
from ...core.conversation import Milliseconds
from ...core.home import Home
from ...core.injection import HookEvent, Injection
from ...core.project import is_in_project, main_worktree, root_of
from ...core.tokens import count
from ...templates.render import Renderer
from .hook_call import HookCall

BUDGETS: Final = {HookEvent.SESSION_START: 1_000, HookEvent.PROMPT: 300, HookEvent.TOOL: 120}
"""Maximum tokens that one call injects, by event."""
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

    home: Home
    config: Config
    store: Store
    namespace: str
    root: Path
    shown: frozenset[str] = frozenset()
    at: Milliseconds | None = None


class Selector(Protocol):
    """Function that selects the text for the call of a hook."""

    def __call__(self, call: HookCall, place: HookPlace, /) -> HookAnswer:
        """Return the text, or an empty answer if nothing is relevant."""
        ...


def answer(
    call: HookCall, home: Home, config: Config, select: Selector, clock: Callable[[], Milliseconds] = now
) -> str:
    """Return the text that the hook injects, and record it in the archive. The text is empty if nothing is relevant.

    The text is also empty if no archive exists, the event is not in `hooks`, or the project is in `hooks_off`. In
    read-only mode, and if the home cannot be written, nothing is recorded.

    Raises:
        PalaverError: The archive cannot be read or written.
    """
    if call.event not in config.hooks or not home.has_database:
        return ""
    with Store.of(home) as store:
        namespace = store.projects.namespace(Path(call.cwd))
        if _is_off(store, config.hooks_off, call.cwd, namespace):
            return ""
        earlier = store.injections.of_session(call.session_id) if call.session_id else []
        if call.event is HookEvent.SESSION_START and call.source == "resume" and earlier:
            return ""  # The transcript of the session already contains the text.
        root = root_of(Path(call.cwd))
        found = select(call, HookPlace(home, config, store, namespace, root, _shown(earlier), clock()))
        if not found.text or count(found.text) > BUDGETS[call.event]:
            return ""
        if not store.is_read_only:
            entry = Injection(clock(), call.event, call.session_id, namespace, count(found.text), found.items)
            with store.transaction():
                store.injections.add(entry)
        return found.text


def quoted(place: HookPlace, lead: str, lines: Sequence[QuotedLine], budget: int) -> HookAnswer:
    """Return the sentence `lead` and as many of the first lines as the budget allows, between quotation markers."""
    renderer = Renderer(place.home.templates, at_shell=True)
    for number in range(len(lines), 0, -1):
        text = renderer.fill("hook_lines", lead=lead, lines=lines[:number], line_tokens=_LINE_TOKENS)
        if count(text) <= budget:
            return HookAnswer(text, tuple(line.id for line in lines[:number]))
    return HookAnswer()


def _shown(earlier: Sequence[Injection]) -> frozenset[str]:
    """Return the IDs of the items that were injected since the session last started or was compacted."""
    starts = [place for place, each in enumerate(earlier) if each.event is HookEvent.SESSION_START]
    return frozenset(item for each in earlier[starts[-1] if starts else 0 :] for item in each.items)


def _is_off(store: Store, projects: Collection[str], cwd: str, namespace: str) -> bool:
    """Return whether `projects` contains the project's name, its folder or a parent of its folder."""
    names = {name for name in projects if "/" not in name}
    return any(namespace in store.projects.namesakes(name) for name in names) or is_in_project(
        [*{*projects} - names], "", cwd, str(main_worktree(root_of(Path(cwd))))
    )
