"""Sharing of a session: the preview with its options, and the download."""

from typing import Final
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..core.shared_session import SharedSession, ShareOptions
from .pages import archive_of, form_of, render, route
from .shared_html import file_name, shared_html

_CHOICES: Final = {"": "Prompts, answers and calls", "output": "Also the output of tools", "prompts": "Prompts only"}
"""Names of what can be shared, by the value in the address."""


def preview(request: Request) -> Response:
    """Show what the file would contain, and what was removed."""
    target, choice = request.query_params.get("target", ""), _choice(request.query_params.get("content", ""))
    shared = _shared(request, target, choice)
    size = len(shared_html(shared).encode())
    return render(
        request, "share.html.j2", target=target, choices=_CHOICES, choice=choice, report=shared.report, size=size
    )


def download(request: Request) -> Response:
    """Return the file."""
    form = form_of(request)
    shared = _shared(request, form.get("target", ""), _choice(form.get("content", "")))
    headers = {"content-disposition": f"attachment; filename*=UTF-8''{quote(file_name(shared, 'html'))}"}
    return Response(shared_html(shared), media_type="text/html", headers=headers)


def _choice(value: str) -> str:
    return value if value in _CHOICES else ""


def _shared(request: Request, target: str, choice: str) -> SharedSession:
    archive = archive_of(request)
    options = ShareOptions(output=choice == "output", prompts_only=choice == "prompts")
    return archive.sharing.session(archive.sharing.number(target), options)


routes: Final[list[BaseRoute]] = [
    route("/share", preview, slow=True),
    route("/share", download, post=True, slow=True, changes=False),
]
