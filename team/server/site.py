"""Whole HTTP application of a team server: the requests of machines, the MCP server, and the pages."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette

from . import tools
from .app import TeamServer, application
from .pages import TeamPages


def site(server: TeamServer) -> Starlette:
    """Return the application."""
    mcp = tools.mcp_app(server)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with mcp.router.lifespan_context(mcp):
            yield

    return application(server, *tools.routes(mcp), *TeamPages(server).routes(), lifespan=lifespan)
