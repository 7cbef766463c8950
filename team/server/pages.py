"""Pages for a browser: a search, and the sessions and observations that it finds, as the person sees them.

A person enters with a token of `palaver team token`, which a cookie keeps until the person signs out. The checks of
Host, Sec-Fetch-Site and Origin, the headers of each answer, the templates and the styles are those of the viewer.
"""

import hmac
from collections.abc import Callable, Mapping, MutableMapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import parse_qs, quote, urlencode, urlsplit

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ...core.errors import InvalidInput, PalaverError, PathOutsideArchive, TeamRefused, UnknownIds
from ...core.query import Query
from ...core.results import Hit
from ...templates.environment import label
from ...viewer.app import static_file
from ...viewer.gate import HEADERS, TOKEN_FIELD, refusal_of
from ...viewer.html_filters import html_environment, type_name
from ...viewer.markdown_html import markdown, prompt
from ...viewer.search_page import ListedHit
from ..protocol import Scope
from . import identity
from .app import TeamServer, read
from .identity import Caller
from .team_index import TeamIndex

if TYPE_CHECKING:
    from jinja2 import Environment

_HITS: Final = 20
_FORM_MAX: Final = 1_000
"""Maximum bytes of the form with the token."""
_Page: TypeAlias = Callable[[Request, TeamIndex], tuple[str, Mapping[str, object]]]
"""Function that returns the name of a template and its values. It runs in a thread."""


class _Visitor(Struct, frozen=True):
    """Names of a team and of the person who looks at its pages, and the form token of these pages."""

    team: str
    person: str
    form_token: str


class TeamPages:
    """Pages of a team server."""

    def __init__(self, server: TeamServer) -> None:
        self._server, address = server, urlsplit(server.settings.url)
        self._authority, self._origin = address.netloc, f"{address.scheme}://{address.netloc}"
        self._secure = address.scheme == "https"
        self._cookie = f"{'__Host-' if self._secure else ''}palaver-team-{address.port or 443}"

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the pages."""
        pages = {"/": _search, "/items/{item}": _item, "/lines/{path:path}": _lines}
        return [
            *(Route(path, self._answering(page), methods=["GET"]) for path, page in pages.items()),
            Route("/enter", self._guarded(self._enter), methods=["POST"]),
            Route("/sign-out", self._guarded(self._sign_out), methods=["POST"]),
            Route("/static/{name}", self._guarded(static_file), methods=["GET"]),
            Route("/{path:path}", self._answering(_missing), methods=["GET"]),
        ]

    def _guarded(self, handler: Callable[[Request], Any]) -> Callable[[Request], Any]:
        """Return a handler that answers only requests of the own pages, with the headers of the viewer."""

        async def answer(request: Request) -> Response:
            if problem := refusal_of(request.scope, self._authority, self._origin):
                response = self._problem(TeamRefused(problem, hint=f"Open {self._origin}/ in a browser.", status=403))
            else:
                try:
                    response = await handler(request)
                except PalaverError as error:
                    response = self._problem(error)
            response.headers.update({name.decode(): value.decode() for name, value in HEADERS})
            return response

        return answer

    def _answering(self, page: _Page) -> Callable[[Request], Any]:
        """Return a handler that shows a page to a person with a token, and the form for the token to others."""

        async def answer(request: Request) -> Response:
            access = request.cookies.get(self._cookie, "")
            caller = await self._caller(access)
            if caller is None:
                return self._render("team_enter.html.j2", 401, refused=False)
            team, person = await self._server.run(self._names, caller)
            visitor = _Visitor(team, person, _form_token(access))
            index = self._server.index(caller.team, caller.person)
            return await self._server.run(self._shown, page, request, index, visitor)

        return self._guarded(answer)

    def _names(self, caller: Caller) -> tuple[str, str]:
        with self._server.database.transaction(caller.team) as connection:
            return identity.member_names(connection, caller.team, caller.person)

    def _shown(self, page: _Page, request: Request, index: TeamIndex, visitor: "_Visitor") -> Response:
        try:
            name, values = page(request, index)
        except PalaverError as problem:
            return self._problem(problem, visitor)
        return self._render(name, visitor=visitor, **values)

    def _problem(self, problem: PalaverError, visitor: "_Visitor | None" = None) -> Response:
        """Return the page for an error."""
        status, text, hint = 500, str(problem), problem.hint
        if isinstance(problem, TeamRefused):
            status = problem.status
        elif isinstance(problem, UnknownIds | PathOutsideArchive):
            status, text = 404, "Nothing is shared at this address"
            hint = "It may have been withdrawn, or the address is incomplete. Search for it."
        elif isinstance(problem, InvalidInput):
            status = 400
        return self._render("team_error.html.j2", status, visitor=visitor, problem=text, hint=hint)

    async def _enter(self, request: Request) -> Response:
        """Keep the token of the form in a cookie that only this server gets, until the browser is closed."""
        access = (await _field(request, "token")).strip()
        if await self._caller(access) is None:
            return self._render("team_enter.html.j2", 401, refused=True)
        response = RedirectResponse("/", 303)
        response.set_cookie(self._cookie, access, httponly=True, secure=self._secure, samesite="strict")
        return response

    async def _sign_out(self, request: Request) -> Response:
        """Delete the cookie. The token itself stays valid, because an agent of the person can use it too."""
        sent, access = await _field(request, TOKEN_FIELD), request.cookies.get(self._cookie, "")
        if not hmac.compare_digest(sent.encode(), _form_token(access).encode()):
            raise TeamRefused("This form belongs to another visit", hint="Reload the page and try again.", status=403)
        response = RedirectResponse("/", 303)
        response.delete_cookie(self._cookie, httponly=True, secure=self._secure, samesite="strict")
        return response

    async def _caller(self, access: str) -> Caller | None:
        """Return the person with a token that is valid for reading on this server."""
        caller = await self._server.run(identity.caller, self._server.database, access) if access else None
        is_valid = caller and caller.audience == self._server.settings.audience and Scope.READ in caller.scopes
        return caller if is_valid else None

    def _render(
        self, name: str, status_code: int = 200, /, *, visitor: "_Visitor | None" = None, **values: object
    ) -> Response:
        page = self._templates.get_template(name).render(path="", visitor=visitor, **values)
        return HTMLResponse(page, status_code)

    @cached_property
    def _templates(self) -> "Environment":
        templates = html_environment()
        values = {"base": "", "read_only": True, "token_field": TOKEN_FIELD}
        cast("MutableMapping[str, Any]", templates.globals).update(values)
        return templates


def _form_token(access: str) -> str:
    """Return the form token of a person's pages, which is derived from the cookie: only these pages contain it."""
    return identity.digest(f"form {access}").hex()


async def _field(request: Request, name: str) -> str:
    """Return a field of a form. Raises `TeamRefused` if the form is too long."""
    form = parse_qs((await read(request, _FORM_MAX)).decode("utf-8", "replace"))
    return form.get(name, [""])[0]


def _search(request: Request, index: TeamIndex) -> tuple[str, Mapping[str, object]]:
    """Show the hits of the query in the address, or the newest entries."""
    text = request.query_params.get("q", "").strip()
    cursor = request.query_params.get("cursor", "")
    query = Query.parse(text, limit=_HITS, cursor=cursor) if text else Query.newest(limit=_HITS)
    results = index.find(replace(query, cursor=cursor))
    older = f"/?{urlencode({'q': text, 'cursor': results.cursor})}" if results.cursor else ""
    return "team_search.html.j2", {"text": text, "hits": [*map(_listed, results.hits)], "older": older}


def _missing(request: Request, _index: TeamIndex) -> tuple[str, Mapping[str, object]]:
    raise PathOutsideArchive(request.url.path)


def _listed(hit: Hit) -> ListedHit:
    lines = f"/lines/{quote(hit.path)}?line={hit.start_line}" if hit.path else ""
    return ListedHit(hit, type_name(label(hit)), f"/items/{hit.id}", lines)


def _item(request: Request, index: TeamIndex) -> tuple[str, Mapping[str, object]]:
    """Show an observation, a memory or an exchange."""
    [detail] = index.details([request.path_params["item"]])
    lines = f"/lines/{quote(detail.path)}?line={detail.start_line}" if detail.path else ""
    return "team_item.html.j2", {"detail": detail, "lines": lines, "markdown": markdown}


def _lines(request: Request, index: TeamIndex) -> tuple[str, Mapping[str, object]]:
    """Show the shared exchanges of a session from a line on."""
    line, path = request.query_params.get("line", "1"), request.path_params["path"]
    if not (line.isascii() and line.isdecimal() and len(line) < 10):
        raise InvalidInput(f"The address names no line: {line[:20]}", hint="Go back to the search.")
    excerpt = index.read(path, int(line), longest=None)
    here = f"/lines/{quote(path)}"
    return "team_lines.html.j2", {"excerpt": excerpt, "here": here, "markdown": markdown, "as_prompt": prompt}
