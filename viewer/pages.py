"""Common parts of all pages: access to the archive, rendering of templates, and answers to errors."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property, partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar, cast
from urllib.parse import parse_qsl

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from ..core.errors import InvalidInput, MemoryNotFound, PalaverError, StoreMissing, UnknownIds
from ..observe.archive import Archive
from .gate import BASE, TOKEN_FIELD
from .html_filters import html_environment

if TYPE_CHECKING:
    from jinja2 import Environment

Result = TypeVar("Result")
Page = Callable[[Request], Response]
"""Function that answers a request. It runs in the thread of the archive."""


class Lane:
    """An archive and the thread that uses it, because an archive serves one thread."""

    def __init__(self, archive: Archive, name: str) -> None:
        self.archive, self._thread = archive, ThreadPoolExecutor(1, thread_name_prefix=name)

    async def run(self, work: Callable[[], Result]) -> Result:
        """Run a function in the thread."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, work)

    async def close(self) -> None:
        """Close the archive in its thread, and end the thread."""
        await self.run(self.archive.close)
        self._thread.shutdown()


class Pages:
    """The archive that the pages show, and the templates.

    Most pages take milliseconds, and share one thread. Pages that may take seconds have a thread of their own.
    """

    def __init__(self, archive: Archive, form_token: str, version: str) -> None:
        self.version, self._form_token, self._read_only = version, form_token, archive.home.is_read_only
        self._fast = Lane(archive, "palaver-viewer")
        self._slow = Lane(archive.another(), "palaver-viewer-slow")

    async def answer(self, page: Page, request: Request, *, slow: bool, changes: bool) -> Response:
        """Return the answer of a page. In read-only mode, pages that change the archive are refused."""
        lane = self._slow if slow else self._fast
        request.state.archive = lane.archive
        if changes and self._read_only:
            return error_page(request, "The archive is read-only.", "Start the viewer without --read-only.", 403)
        return await lane.run(partial(self._answer, page, request))

    def _answer(self, page: Page, request: Request) -> Response:
        try:
            return page(request)
        except StoreMissing:
            archive_of(request).close()
            return render(request, "empty.html.j2")
        except PalaverError as error:
            if not isinstance(error, InvalidInput):
                archive_of(request).close()  # The next request opens the archive again.
            return error_page(request, str(error), error.hint, _status(error))

    @cached_property
    def templates(self) -> "Environment":
        """Environment of the HTML templates. All values are escaped."""
        templates = html_environment()
        values = {
            "base": BASE,
            "form_token": self._form_token,
            "token_field": TOKEN_FIELD,
            "read_only": self._read_only,
        }
        cast("MutableMapping[str, Any]", templates.globals).update(values)
        return templates

    async def close(self) -> None:
        """Close the archives and end their threads."""
        await self._fast.close()
        await self._slow.close()


def _status(error: PalaverError) -> int:
    if isinstance(error, UnknownIds | MemoryNotFound):
        return 404
    return 400 if isinstance(error, InvalidInput) else 500


def route(path: str, page: Page, *, post: bool = False, slow: bool = False, changes: bool | None = None) -> Route:
    """Return the route of a page below `BASE`.

    Args:
        path: Path below `BASE`.
        page: Function that answers.
        post: Whether the page answers forms only.
        slow: Whether other pages are answered while this one is built.
        changes: Whether the page changes the archive. By default, forms do.
    """
    refused = post if changes is None else changes

    @wraps(page)
    async def endpoint(request: Request) -> Response:
        if post:
            request.state.form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
        return await pages_of(request).answer(page, request, slow=slow, changes=refused)

    methods = ["POST"] if post else ["GET"]
    return Route(path, cast("Callable[[Request], Awaitable[Response]]", endpoint), methods=methods)


def pages_of(request: Request) -> Pages:
    """Return the common parts of the pages of this application."""
    pages: Pages = request.app.state.pages
    return pages


def archive_of(request: Request) -> Archive:
    """Return the archive that the page shows."""
    archive: Archive = request.state.archive
    return archive


def render(request: Request, name: str, /, status_code: int = 200, **values: object) -> Response:
    """Return a page from a template in the folder `templates`.

    The template also has `request` and `path`, the path of the page below `BASE`.
    """
    path = request.url.path.removeprefix(BASE) or "/"
    text = pages_of(request).templates.get_template(name).render(request=request, path=path, **values)
    return HTMLResponse(text, status_code)


def form_of(request: Request) -> Mapping[str, str]:
    """Return the fields of the form in a POST request, each with its last value."""
    form: dict[str, str] = request.state.form
    return form


def page_number(request: Request) -> int:
    """Return the number of the page of a list that the address names, or 1."""
    text = request.query_params.get("page", "")
    return max(1, int(text)) if text.isascii() and text.isdecimal() and len(text) < 7 else 1


def redirect(path: str) -> Response:
    """Return a redirect to a page after a form was processed."""
    return RedirectResponse(f"{BASE}{path}", 303)


def error_page(request: Request, problem: str, hint: str = "", status: int = 500) -> Response:
    """Return a page that shows a problem and the remedy."""
    return render(request, "error.html.j2", status, problem=problem, hint=hint)


async def not_found(request: Request, error: Exception) -> Response:
    """Answer a request for a page that does not exist, or with a method that it does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    return error_page(request, "This page does not exist.", "Start from the home page.", status)


async def failed(request: Request, error: Exception) -> Response:
    """Answer a request that failed because of a defect. The exception is logged, not shown."""
    return error_page(
        request,
        f"Palaver failed to build this page ({type(error).__name__}).",
        "Run `palaver doctor`. The terminal of the viewer shows the details.",
        500,
    )
