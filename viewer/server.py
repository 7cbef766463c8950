"""Server of `palaver view`, and the viewer beside MCP tools over HTTP."""

import secrets
import sys
from collections.abc import Callable
from functools import partial
from typing import Final

from ..agents.loopback_server import ADDRESS, App, listening, serve_app
from ..observe.archive import Archive
from .app import viewer_app
from .gate import Access

_RESOLVES_LOCALHOST: Final = sys.platform != "darwin"
"""True if browsers resolve names below `localhost` on their own. Safari asks the system, which does not know them."""


def serve_viewer(archive: Archive, version: str, port: int, target: str, announce: Callable[[str], None]) -> None:
    """Serve the pages of an archive until interrupted. Port 0 selects a free port.

    `announce` is called with the link that opens the page `target`, and with a new link after each use of a link.

    Raises:
        InvalidInput: The port is in use or not allowed.
    """
    with listening(port, "palaver view --port") as listener:
        access = _access(listener.getsockname()[1])
        app = viewer_app(archive, access, version, lambda: announce(access.link()))
        serve_app(app, listener, partial(announce, access.link(target)))


def viewer_at(archive: Archive, version: str, port: int, announce: Callable[[str], None]) -> App:
    """Return the viewer for a server that already listens on a port. `announce` is called as in `serve_viewer`."""
    access = _access(port)
    announce(access.link())
    return viewer_app(archive, access, version, lambda: announce(access.link()))


def _access(port: int) -> Access:
    """Return the secrets of a viewer on a port, with a random host where browsers resolve it."""
    return Access(f"palaver-{secrets.token_hex(4)}.localhost" if _RESOLVES_LOCALHOST else ADDRESS, port)
