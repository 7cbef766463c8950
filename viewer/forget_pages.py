"""Deletion of conversations: the preview, the confirmation, and the undo."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..core.deletion import DeletionRequest
from ..core.errors import InvalidInput
from .pages import archive_of, form_of, redirect, render, route


def preview(request: Request) -> Response:
    """Show what the deletion of a session, or of lines of it, would remove."""
    target = request.query_params.get("target", "")
    deletion = archive_of(request).deletions.preview(_request(target))
    return render(request, "forget.html.j2", target=target, preview=deletion, changed=False)


def delete(request: Request) -> Response:
    """Delete what a preview showed. If the content has changed since, show a new preview."""
    form = form_of(request)
    target = form.get("target", "")
    result = archive_of(request).deletions.delete(_request(target), form.get("confirm", ""))
    if result.number is None:
        return render(request, "forget.html.j2", target=target, preview=result.preview, changed=True)
    return redirect(f"/deletions?done={result.number}")


def deletions(request: Request) -> Response:
    """List past deletions. The last one, named in the address, is announced."""
    return render(
        request,
        "deletions.html.j2",
        deletions=archive_of(request).deletions.history(),
        done=request.query_params.get("done", ""),
        undone=request.query_params.get("undone", ""),
    )


def undo(request: Request) -> Response:
    """Restore the content of a deletion."""
    number = form_of(request).get("deletion", "")
    if not (number.isascii() and number.isdecimal() and len(number) < 19):
        raise InvalidInput("No deletion was chosen", hint="Press Restore beside a deletion.")
    archive_of(request).deletions.undo(int(number))
    return redirect(f"/deletions?undone={number}")


def _request(target: str) -> DeletionRequest:
    """Return the request for one target. Raises `InvalidInput` without a target, which would select everything."""
    if not target.strip():
        raise InvalidInput("Nothing was chosen to forget", hint="Open a session or an observation, and press Forget.")
    return DeletionRequest(targets=(target,))


routes: Final[list[BaseRoute]] = [
    route("/forget", preview, slow=True),
    route("/forget", delete, post=True, slow=True),
    route("/deletions", deletions),
    route("/deletions/undo", undo, post=True, slow=True),
]
