"""Page of a file: all edits of it, over all sessions and agents, the newest first."""

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, NamedTuple
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.store import Store
from ..archiver.store.exchange_table import Edit, absolute_path
from ..core import ids
from ..core.transcript_page import Call, FileDiff
from ..observe.transcript.session_views import SessionViews
from ..observe.transcript.tool_calls import relative
from ..observe.transcript.transcript_pages import heading_of
from ..search.present.details import SessionNames
from .gate import BASE
from .pages import archive_of, page_number, render, route
from .session_pages import edit_of

_EXCHANGES: Final = 25
"""Exchanges with edits on one page."""
_READ: Final = 2_000
"""Maximum number of edits of files with the same name that are compared with the path."""


class ListedEdit(NamedTuple):
    """Edit of the file by one call, the address of its changes and, on a page that opens all edits, the changes."""

    call: Call
    changes: str
    diffs: tuple[FileDiff, ...] = ()


class EditedExchange(NamedTuple):
    """Exchange that edited the file, with its prompt, and the addresses of its session and of the exchange."""

    edit: Edit
    title: str
    prompt: str
    session: str
    place: str
    edits: list[ListedEdit]


def file(request: Request) -> Response:
    """Show the edits of a file. A relative path names all files with this path, or the one in a session's folder.

    With `open` in the address, all changes are shown.
    """
    archive = archive_of(request)
    store, path = archive.store, request.query_params.get("path", "").strip()
    session, is_open = request.query_params.get("session", ""), "open" in request.query_params
    edits, page = _edits_of(store, _absolute(store, path, session)), page_number(request)
    first = (page - 1) * _EXCHANGES
    views = SessionViews(archive.home, store)
    named = {"path": path, "session": session}
    closed, opened = (f"{BASE}/files?{urlencode(values)}" for values in (named, {**named, "open": "all"}))
    address = opened if is_open else closed
    return render(
        request,
        "file.html.j2",
        name=path,
        paths=list(dict.fromkeys(edit.absolute_path for edit in edits)),
        total=len(edits),
        sessions=len({edit.session for edit in edits}),
        exchanges=list(_exchanges(views, store, edits[first : first + _EXCHANGES], is_open=is_open)),
        is_open=is_open,
        toggled=f"{closed if is_open else opened}&page={page}",
        newer=f"{address}&page={page - 1}" if page > 1 else "",
        older=f"{address}&page={page + 1}" if first + _EXCHANGES < len(edits) else "",
    )


def _absolute(store: Store, path: str, session: str) -> str:
    """Return a path below the working folder of a session, if it is relative and the session is archived."""
    numbers = store.sessions.beginning_with(session) if session else []
    folder = store.sessions.load(numbers[0]).cwd if numbers else ""
    return absolute_path(path, folder) if path else ""


def _edits_of(store: Store, path: str) -> list[Edit]:
    """Return the edits of the files whose path ends with these folders and this name, the newest first."""
    parts = _parts(path)
    edits = store.edits.of_names([parts[-1]], _READ) if parts else []
    return [edit for edit in edits if _parts(edit.absolute_path)[-len(parts) :] == parts]


def _parts(path: str) -> tuple[str, ...]:
    """Return the folders and the name in a path with the separators of any system."""
    return PurePath(path.replace("\\", "/")).parts


def _exchanges(views: SessionViews, store: Store, edits: list[Edit], *, is_open: bool) -> Iterator[EditedExchange]:
    names = SessionNames(store).of_all({edit.session for edit in edits})
    addresses = store.session_list.addresses([edit.session for edit in edits])
    stored = store.exchanges.load([edit.exchange for edit in edits])
    for edit in edits:
        if edit.exchange not in stored:
            continue  # Another process has just deleted it.
        files = views.pages.files(edit.session)
        part = next((at for at, own in enumerate(files, 1) if own.source.id == stored[edit.exchange].source), 1)
        session, exchange = f"{BASE}/sessions/{quote(addresses[edit.session])}", stored[edit.exchange].exchange
        name = relative(edit.path, edit.cwd)
        calls = [call for call in views.pages.edits(files[part - 1], exchange) if call.paths[0] == name]
        yield EditedExchange(
            edit,
            names[edit.session].title or "Untitled session",
            heading_of(exchange),
            session,
            f"{session}?item={ids.show('exchange', edit.exchange)}",
            [
                ListedEdit(
                    call,
                    f"{session}/edit?part={part}&line={call.line}&position={call.position}&file={quote(name)}",
                    edit_of(views, edit.session, part, call.line, call.position, name).diffs if is_open else (),
                )
                for call in calls
            ],
        )


routes: Final[list[BaseRoute]] = [route("/files", file, slow=True)]
