"""Deletion of conversations: the preview, the confirmation, and the undo."""

from typing import Final, NamedTuple
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from ..archiver.lines import one_line
from ..archiver.store import Store
from ..core import ids
from ..core.conversation import Milliseconds
from ..core.deletion import Deletion, DeletionPreview, DeletionRequest
from ..core.errors import InvalidInput
from .gate import BASE
from .pages import archive_of, form_of, redirect, render, route

_SHOWN: Final = 600
"""Maximum characters of a prompt or answer in a preview."""

_LISTED: Final = 160
"""Maximum characters of a prompt in the list of deletions."""
_PROMPTS: Final = 3
"""Maximum number of prompts of one deletion in the list."""


class ListedDeletion(NamedTuple):
    """Deletion with its first prompts, and the address of its session if it has one that still has exchanges.

    A deletion that cannot be undone has neither.
    """

    deletion: Deletion
    prompts: list[str]
    session: str


class ForgottenExchange(NamedTuple):
    """Beginning of the prompt and of the answer of an exchange in a preview, its time, and its address."""

    prompt: str
    answer: str
    at: Milliseconds | None
    address: str


def preview(request: Request) -> Response:
    """Show what the deletion of a session, or of lines of it, would remove."""
    target = request.query_params.get("target", "")
    deletion = archive_of(request).deletions.preview(_request(target))
    return _preview(request, target, deletion, changed=False)


def delete(request: Request) -> Response:
    """Delete what a preview showed. If the content has changed since, show a new preview."""
    form = form_of(request)
    target = form.get("target", "")
    result = archive_of(request).deletions.delete(_request(target), form.get("confirm", ""))
    if result.number is None:
        return _preview(request, target, result.preview, changed=True)
    return redirect(f"/deletions?done={result.number}")


def deletions(request: Request) -> Response:
    """List past deletions. The last one, named in the address, is announced."""
    archive = archive_of(request)
    return render(
        request,
        "deletions.html.j2",
        deletions=[_listed(archive.store, deletion) for deletion in archive.deletions.history()],
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


def _listed(store: Store, deletion: Deletion) -> ListedDeletion:
    prompts = store.deleted_rows.prompts(deletion.id, _PROMPTS)
    sessions = store.session_list.totals({session for session, _ in prompts})
    names = store.session_list.addresses(sessions).values() if deletion.summary.sessions == 1 else ()
    address = next((f"{BASE}/sessions/{quote(name)}" for name in names), "")
    return ListedDeletion(deletion, [one_line(prompt, _LISTED) for _, prompt in prompts if prompt], address)


def _preview(request: Request, target: str, deletion: DeletionPreview, *, changed: bool) -> Response:
    exchange = _exchange(archive_of(request).store, target)
    sessions = [f"{BASE}/sessions/{quote(session.session_id)}" for session in deletion.sessions]
    back = exchange.address if exchange else next(iter(sessions), f"{BASE}/")
    return render(
        request, "forget.html.j2", target=target, preview=deletion, changed=changed, exchange=exchange, back=back
    )


def _exchange(store: Store, target: str) -> ForgottenExchange | None:
    """Return the exchange that a target names itself or by one of its observations, or None for another target."""
    public = ids.canonical(target)
    key = ids.key(public) if public else None
    items = store.items.load([key] if key is not None else [])
    for stored in store.exchanges.load([item.exchange for item in items.values()]).values():
        exchange, [session] = stored.exchange, store.session_list.addresses([stored.session]).values()
        prompt, answer = one_line(exchange.prompt, _SHOWN), one_line(exchange.answer, _SHOWN)
        return ForgottenExchange(prompt, answer, exchange.started, f"{BASE}/sessions/{quote(session)}?item={public}")
    return None


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
