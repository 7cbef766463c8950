"""Pages of one session: the conversation, its prompts, its edits, and what a reader opens or finds in it."""

import shlex
from collections.abc import Mapping
from itertools import groupby
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.formats.resume_commands import resume_line
from ..archiver.store import Store
from ..archiver.store.session_label_table import SessionLabel, tag_of
from ..core.conversation import SessionKind
from ..core.errors import InvalidInput
from ..core.transcript_page import CallDetail, ExchangeSteps, Step, TranscriptPage
from ..observe.transcript.session_views import SessionViews
from .gate import BASE
from .markdown_html import code, is_picture, markdown, prompt, without_labels
from .pages import archive_of, form_of, redirect, render, route

_SHORT: Final = 1_200
"""Number of characters of a long prompt that are shown before it is opened."""
_LONG: Final = 2_000
"""Minimum characters of a prompt that is shown shortened."""


class SessionCommands(NamedTuple):
    """Short ID of a session, and the shell commands that continue it. A command is empty if it is not available."""

    id: str
    resume: str
    handoff: str


def session_page(request: Request) -> Response:
    """Show a page of a session: its start, the page with a line or, with `end` or while it runs, its end.

    An item in the address leads to its line.
    """
    views, number = _session(request)
    numbers = {name: _integer(request, name) for name in ("part", "line", "start", "before")}
    if item := request.query_params.get("item", ""):
        place = views.place_of(item, numbers["line"] or 0, request.query_params.get("near", ""))
        part, line = place or (None, None)
        query = f"?part={part}&line={line}#L{line}" if place else ""
        return redirect(f"/sessions/{quote(views.brief(number).id)}{query}")
    if set(numbers.values()) == {None} and "end" not in request.query_params and views.has_ended(number):
        numbers |= {"part": 1, "start": 1}
    page = views.pages.page(number, **numbers)
    at_end = page.later is None and page.part == page.parts
    return _render(
        request, views, number, "session.html.j2", page=page, line=numbers["line"],
        target=_step_with(page, numbers["line"]),
        label=archive_of(request).store.session_labels.of([number]).get(number, SessionLabel()),
        commands=_commands(archive_of(request).store, number),
        at_end=at_end, answer=views.answer_of(number) if at_end else None,
    )  # fmt: skip


def label(request: Request) -> Response:
    """Store the title, the tags and the pin that a form gives to a session. Palaver's own title is not stored."""
    views, number = _session(request)
    form, store = form_of(request), archive_of(request).store
    tags = [tag_of(name) for name in form.get("tags", "").replace(",", " ").split()]
    title = " ".join(form.get("title", "").split())
    renamed = store.session_labels.of([number]).get(number, SessionLabel()).title
    is_own = not renamed and title == views.header(number).title
    with store.transaction():
        store.session_labels.rename(number, "" if is_own else title)
        store.session_labels.pin(number, pinned="pinned" in form)
        previous = store.session_labels.of([number])[number].tags
        store.session_labels.tag(number, tags, set(previous).difference(tags))
    return redirect(f"/sessions/{quote(views.brief(number).id)}")


def after(request: Request) -> Response:
    """Return the steps from the last known step on, or an empty answer if the file has not grown."""
    views, number = _session(request)
    part, line, last_known = (_integer(request, name) or 0 for name in ("part", "line", "known"))
    lines = views.last_line(number, part)
    if lines <= last_known:
        return Response(status_code=204)
    page = views.pages.page(number, part, start=max(line, 1))
    return _render(request, views, number, "session_after.html.j2", page=page, target=None)


def outline(request: Request) -> Response:
    """Show the prompts of a session as an outline."""
    views, number = _session(request)
    return _render(request, views, number, "session_outline.html.j2", prompts=views.outline(number))


def prompts(request: Request) -> Response:
    """Show all prompts and answers of the user, without the agent's replies."""
    views, number = _session(request)
    return _render(request, views, number, "session_prompts.html.j2", prompts=views.prompts(number))


def edits(request: Request) -> Response:
    """Show all edits of a session by file."""
    views, number = _session(request)
    return _render(request, views, number, "session_edits.html.j2", files=views.edits(number))


def find(request: Request) -> Response:
    """Show the matches of a text in a session."""
    views, number = _session(request)
    text = request.query_params.get("q", "")
    return _render(request, views, number, "session_find.html.j2", text=text, matches=views.find(number, text))


def tokens(request: Request) -> Response:
    """Show the token usage of a session and its list price."""
    views, number = _session(request)
    archive = archive_of(request)
    own, total = archive.usage.of_session(number)
    totals = archive.store.session_list.totals([number]).get(number)
    reported = totals.tokens if totals else 0
    return _render(request, views, number, "session_tokens.html.j2", own=own, total=total, reported=reported)


def calls(request: Request) -> Response:
    """Show the calls of a run."""
    views, number = _session(request)
    part, line, position = _place(request)
    step = views.pages.step(number, part, line, position)
    return _render(request, views, number, "session_calls.html.j2", part=part, step=step)


def call(request: Request) -> Response:
    """Show a call of a run with its input or changes, and its result."""
    views, number = _session(request)
    part, line, position = _place(request)
    step = views.pages.step(number, part, line, position)
    detail = views.details.call(number, part, step, _integer(request, "call") or 0)
    return _opened(request, views, number, part, detail)


def edit(request: Request) -> Response:
    """Show an edit, named by the line and the position of its call. With `file`, show the changes of this file only."""
    views, number = _session(request)
    part, line, position = _place(request)
    detail = edit_of(views, number, part, line, position, request.query_params.get("file", ""))
    return _opened(request, views, number, part, detail)


def edit_of(views: SessionViews, number: int, part: int, line: int, position: int, path: str) -> CallDetail:
    """Return the edit at a position of a line. Of the changes of several files, it has only those of `path`."""
    detail = views.details.call(number, part, *views.call_at(number, part, line, position))
    own = tuple(diff for diff in detail.diffs if diff.path == path)
    return replace(detail, diffs=own) if own else detail


def text(request: Request) -> Response:
    """Show the whole text of a turn, or its next part."""
    views, number = _session(request)
    part, line, position = _place(request)
    start = _integer(request, "start") or 0
    clipped = views.details.text(number, part, line, position, start)
    address = {"part": part, "line": line, "position": position}
    return _render(request, views, number, "session_text.html.j2", clipped=clipped, start=start, **address)


def record(request: Request) -> Response:
    """Show the archived record on a line as JSON, without secrets."""
    views, number = _session(request)
    part, line, _ = _place(request)
    clipped = views.details.record(number, part, line)
    return _render(request, views, number, "session_record.html.j2", clipped=clipped, part=part, line=line)


def picture(request: Request) -> Response:
    """Return a picture. Its media type was recognised by its first bytes."""
    views, number = _session(request)
    part, line, position = _place(request)
    media_type, data = views.details.picture(number, part, line, position)
    return Response(data, media_type=media_type)


def _session(request: Request) -> tuple[SessionViews, int]:
    """Return the views of the archive, and the number of the session that the path names."""
    archive = archive_of(request)
    views = SessionViews(archive.home, archive.store)
    return views, views.number(request.path_params["session"])


def _commands(store: Store, number: int) -> SessionCommands:
    session, source = store.sessions.load(number), store.sources.main(number)
    short = store.sessions.short_ids([number])[number]
    if session.kind is SessionKind.SUBAGENT:
        return SessionCommands(short, "", "")
    resume = resume_line(session, short, source.path, contained=source.is_contained) if source else ""
    return SessionCommands(short, resume, shlex.join(["palaver", "handoff", short]))


def _opened(request: Request, views: SessionViews, number: int, part: int, detail: CallDetail) -> Response:
    prompt_text, answer = views.subagent(detail)
    return _render(
        request, views, number, "session_call.html.j2", part=part, detail=detail, subagent_prompt=prompt_text,
        subagent_answer=answer,
    )  # fmt: skip


def _render(request: Request, views: SessionViews, number: int, name: str, **values: Any) -> Response:
    """Return a page about a session or, for a part of an open page, only its content."""
    part = request.query_params.get("fragment") == "1"
    header = views.brief(number) if part else views.header(number)
    return render(
        request,
        name,
        layout="fragment.html.j2" if part else "session_base.html.j2",
        session=header,
        here=f"{BASE}/sessions/{quote(header.id)}",
        markdown=markdown,
        as_prompt=prompt,
        code=code,
        shortened=_shortened,
        by_rewind=_by_rewind,
        picture_count=_picture_count,
        without_labels=without_labels,
        **values,
    )


def _shortened(step: Step) -> str:
    """Return the beginning of a long prompt, up to the end of a paragraph, line or word, or an empty string."""
    if len(step.text) + step.hidden < _LONG:
        return ""
    start = step.text[:_SHORT]
    ends = (start.rfind(mark, _SHORT // 2) for mark in ("\n\n", "\n", " "))
    return start[: next((end for end in ends if end > 0), _SHORT)]


def _picture_count(text: str) -> int:
    """Return the number of pictures in a prompt. The archived text contains a label in place of each."""
    return sum(map(is_picture, text.split("\n")))


def _by_rewind(exchange: ExchangeSteps) -> list[tuple[bool, list[Step]]]:
    """Return consecutive steps that are all rewound, or all not, together."""
    return [(rewound, [*steps]) for rewound, steps in groupby(exchange.steps, lambda step: step.rewound)]


def _step_with(page: TranscriptPage, line: int | None) -> tuple[int, int] | None:
    """Return the line and position of the step that a link to a line means: the one that begins there, if any."""
    steps = [step for exchange in page.exchanges for step in exchange.steps]
    containing = [step for step in steps if line is not None and step.line <= line <= step.last_line]
    best = next((step for step in containing if step.line == line), next(iter(containing), None))
    return None if best is None else (best.line, best.position)


def _place(request: Request) -> tuple[int, int, int]:
    """Return the part, the line and the position that the address names."""
    part, line, position = (_integer(request, name) for name in ("part", "line", "position"))
    if line is None:
        raise InvalidInput("The address names no line", hint="Go back to the session.")
    return part or 1, line, position or 0


def _integer(request: Request, name: str) -> int | None:
    """Return a whole number in the address, or None if it has none. Raises `InvalidInput` for other text."""
    params: Mapping[str, str] = request.query_params
    value = params.get(name, "")
    if not value:
        return None
    if not (value.isascii() and value.isdigit() and len(value) < 12):
        raise InvalidInput(f"`{name}` in the address is not a number: {value[:40]}", hint="Go back to the session.")
    return int(value)


_BELOW: Final = {
    "after": after,
    "call": call,
    "calls": calls,
    "edit": edit,
    "edits": edits,
    "find": find,
    "outline": outline,
    "picture": picture,
    "prompts": prompts,
    "record": record,
    "text": text,
    "tokens": tokens,
}
_WHOLE: Final = {edits, find, outline, prompts, tokens}
"""Pages that read the whole session, which takes up to a second for one of 50 MB."""
_PATH: Final = "/sessions/{session:path}"
routes: Final[list[BaseRoute]] = [
    *(route(f"{_PATH}/{name}", page, slow=page in _WHOLE) for name, page in _BELOW.items()),
    route(f"{_PATH}/label", label, post=True),
    route(_PATH, session_page),
]
