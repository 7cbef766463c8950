"""ASGI application of the viewer: all pages behind the gate."""

import mimetypes
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from functools import cache
from importlib import import_module
from typing import Final, cast

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Mount, Route

from ..agents.loopback_server import App
from ..observe.archive import Archive
from .gate import BASE, Access, Gate
from .html_filters import FOLDER
from .pages import Pages, failed, not_found

_MODULES: Final = (
    "home_page",
    "session_list_page",
    "session_pages",
    "share_pages",
    "file_page",
    "search_page",
    "observation_pages",
    "memory_pages",
    "usage_page",
    "forget_pages",
    "archive_page",
)
"""Modules with pages. Each has a list `routes`."""
_STATIC: Final = frozenset(path.name for path in (FOLDER / "static").iterdir())
"""Files that the viewer serves."""


def viewer_app(archive: Archive, access: Access, version: str, entered: Callable[[], None]) -> App:
    """Return the pages of an archive behind the gate. `entered` is called when a one-time link was used."""
    pages = Pages(archive, access.form_token, version)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        yield
        await pages.close()

    modules = [import_module(f".{name}", __package__) for name in _MODULES]
    routes = [route for module in modules for route in cast("list[BaseRoute]", module.routes)]
    app = Starlette(
        routes=[
            Route("/", _to_home),
            Mount(BASE, routes=[*routes, Route("/static/{name}", static_file)]),
        ],
        exception_handlers={HTTPException: not_found, Exception: failed},
        lifespan=lifespan,
    )
    app.state.pages = pages
    return Gate(cast("App", app), access, entered)


async def _to_home(_: Request) -> Response:
    return RedirectResponse(f"{BASE}/", 303)


async def static_file(request: Request) -> Response:
    """Return a style sheet or a script of the pages."""
    name = request.path_params["name"]
    if name not in _STATIC:
        raise HTTPException(404)
    kind, _ = mimetypes.guess_type(name)
    return Response(_content(name), media_type=kind)


@cache
def _content(name: str) -> bytes:
    return (FOLDER / "static" / name).read_bytes()
