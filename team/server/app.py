"""HTTP application of a team server: the requests of `protocol`, each in a thread with its own transaction."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import msgspec
from anyio import CapacityLimiter, to_thread
from msgspec import Struct, json
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from ...archiver.redaction import VERSION as RULES
from ...archiver.redaction.redactor import Redactor
from ...core.errors import InvalidInput, TeamRefused
from ...search.model.embedder import load
from ...search.model.embedding import Embedder
from ..protocol import (
    BYTES_MAX,
    PROTOCOL,
    ChallengeRequest,
    Hello,
    Join,
    Leave,
    Refusal,
    Scope,
    SharedRequest,
    SignedChallenge,
    TeamQuery,
)
from . import identity, pushes
from .database import TeamDatabase
from .erasure import Promise
from .identity import Caller
from .migration import latest
from .rate_limit import SECONDS, RateLimit
from .raw_store import RawStore
from .serving import is_loopback
from .team_index import TeamIndex

_BODY_MAX: Final = 64_000_000
"""Maximum bytes of a request with a token: one large item is sent alone."""
_SMALL_MAX: Final = 100_000
"""Maximum bytes of a request without a token."""
_THREADS: Final = 16
_CHALLENGES: Final = 120
"""Maximum number of challenges in a minute for one address. A machine needs one in 15 minutes."""
_FAILED_JOINS: Final = 10
"""Maximum number of refused joins in a minute from one address, such as those with a wrong code."""

Lifespan: TypeAlias = Callable[[Starlette], AbstractAsyncContextManager[None]]
_Request = TypeVar("_Request")
_Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class ServerSettings(Struct, frozen=True):
    """Settings of a running server. `url` is the address that members use, without a slash at its end."""

    url: str
    version: str
    promise: Promise = Promise()

    @property
    def audience(self) -> str:
        """URL for which tokens are issued: that of the MCP server."""
        return f"{self.url}/mcp"


class TeamServer:
    """Requests of members, on one database."""

    def __init__(
        self,
        database: TeamDatabase,
        settings: ServerSettings,
        redactor: Redactor,
        embedder: Embedder | None = None,
        raw_store: RawStore | None = None,
    ) -> None:
        """Answer requests. Queries are embedded by the packaged model, unless another embedder is given.

        Without `raw_store`, full copies are refused.
        """
        self.database, self.settings, self.embedder = database, settings, embedder or load()
        self.raw_store = raw_store
        self._redactor = redactor
        self._limiter = CapacityLimiter(_THREADS)
        self._challenges, self._failed_joins = RateLimit(_CHALLENGES), RateLimit(_FAILED_JOINS)
        self._has_warned = False

    def routes(self) -> list[BaseRoute]:
        """Return the routes of the protocol."""
        posts: Mapping[str, _Handler] = {
            "join": self._join,
            "challenge": self._challenge,
            "token": self._token,
            "push": self._push,
            "shared": self._shared,
            "status": self._status,
            "leave": self._leave,
            "search": self._search,
        }
        return [
            Route("/v1/hello", self._hello, methods=["GET"]),
            *(Route(f"/v1/{name}", _answering(handler), methods=["POST"]) for name, handler in posts.items()),
        ]

    async def caller(self, request: Request, scope: Scope | None = None) -> Caller:
        """Return who sent a request.

        Raises:
            TeamRefused: The token is missing, expired or for another server, or lacks the scope.
        """
        kind, _, access = request.headers.get("authorization", "").partition(" ")
        caller = await self.run(identity.caller, self.database, access.strip()) if kind.lower() == "bearer" else None
        if caller is None or caller.audience != self.settings.audience:
            raise TeamRefused("The token is missing, unknown or expired", hint="Ask for a new one.", status=401)
        if scope is not None and scope not in caller.scopes:
            raise TeamRefused(f"The token lacks the scope {scope}", hint="Use another token.", status=403)
        return caller

    def index(self, team: UUID, person: UUID) -> TeamIndex:
        """Return the index of what a team shares, as a person sees it."""
        return TeamIndex(self.database, team, person, self.embedder, self.raw_store)

    async def run(self, work: Callable[..., _Request], *arguments: Any) -> _Request:
        """Run a function in a thread. A number of them run at the same time."""
        return await to_thread.run_sync(work, *arguments, limiter=self._limiter)

    async def _hello(self, _request: Request) -> Response:
        settings = self.settings
        has_store = self.raw_store is not None
        return reply(Hello(PROTOCOL, latest(), settings.version, RULES, self.embedder.name, has_store))

    async def _join(self, request: Request) -> Response:
        address = self._address(request)
        self._failed_joins.take(address)  # first, so that requests at the same time count too
        joined = await self.run(identity.join, self.database, await parsed(request, Join))
        self._failed_joins.give_back(address)
        return reply(joined)

    async def _challenge(self, request: Request) -> Response:
        self._challenges.take(self._address(request))
        return reply(await self.run(identity.challenge, self.database, await parsed(request, ChallengeRequest)))

    async def _token(self, request: Request) -> Response:
        signed = await parsed(request, SignedChallenge)
        return reply(await self.run(identity.token, self.database, signed, self.settings.audience))

    async def _push(self, request: Request) -> Response:
        caller = await self.caller(request, Scope.PUSH)
        body = await read(request, _BODY_MAX)
        try:
            return reply(await self.run(pushes.push, self.database, caller, body, self._redactor, self.raw_store))
        except pushes.OutOfStep as problem:
            return reply(problem.position, 409)

    async def _shared(self, request: Request) -> Response:
        caller = await self.caller(request, Scope.PUSH)
        return reply(await self.run(pushes.shared, self.database, caller, await parsed(request, SharedRequest)))

    async def _status(self, request: Request) -> Response:
        caller = await self.caller(request)
        promise = self.settings.promise
        return reply(await self.run(pushes.status, self.database, caller, promise, self.raw_store))

    async def _search(self, request: Request) -> Response:
        caller = await self.caller(request, Scope.READ)
        index = self.index(caller.team, caller.person)
        return reply(await self.run(index.hits, await parsed(request, TeamQuery)))

    async def _leave(self, request: Request) -> Response:
        caller = await self.caller(request, Scope.PUSH)
        message = await parsed(request, Leave)
        return reply(await self.run(pushes.leave, self.database, caller, message, self.raw_store))

    def _address(self, request: Request) -> str:
        """Return the address of the client. Behind a proxy on this machine, it is the one that the proxy states."""
        address = request.client.host if request.client else ""
        is_of_proxy = is_loopback(address) and not is_loopback(urlsplit(self.settings.url).hostname or "")
        if is_of_proxy and not self._has_warned:
            self._has_warned = True
            logging.getLogger(__name__).warning(
                "The proxy states no address of its client, so all members share one limit of requests. "
                "Let it set the header X-Forwarded-For."
            )
        return address


def application(server: TeamServer, *routes: BaseRoute, lifespan: Lifespan | None = None) -> Starlette:
    """Return the application with the routes of a server, and further routes."""
    return Starlette(
        routes=[*server.routes(), *routes],
        exception_handlers={404: _not_found, 405: _not_found, Exception: _failed},
        lifespan=lifespan,
    )


def reply(value: Struct, status: int = 200) -> Response:
    """Return a value as JSON."""
    return Response(json.encode(value), status, {"cache-control": "no-store"}, "application/json")


async def parsed(request: Request, kind: type[_Request]) -> _Request:
    """Return the message in the body of a request.

    Raises:
        TeamRefused: The body is too long, or not such a message.
    """
    try:
        return json.decode(await read(request, _SMALL_MAX), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise TeamRefused(f"The request is invalid: {error}", hint="Update Palaver.", status=422) from None


async def read(request: Request, longest: int) -> bytes:
    """Return the body of a request.

    Raises:
        TeamRefused: The body is longer than `longest` bytes, or the connection was closed.
    """
    body = bytearray()
    try:
        async for chunk in request.stream():
            body += chunk
            if len(body) > longest:
                hint = f"Send at most {BYTES_MAX:,} bytes, or one item."
                raise TeamRefused("The request is too long", hint=hint, status=413)
    except ClientDisconnect:
        raise TeamRefused("The connection was closed", status=400) from None
    return bytes(body)


def refusal(problem: TeamRefused) -> Response:
    """Return the reply to a refused request."""
    response = reply(Refusal(str(problem), problem.hint), problem.status)
    if problem.status == 401:
        response.headers["www-authenticate"] = "Bearer"
    if problem.status == 429:
        response.headers["retry-after"] = str(SECONDS)
    return response


def _answering(handler: _Handler) -> _Handler:
    """Return a handler that answers a refused request."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except TeamRefused as problem:
            return refusal(problem)
        except InvalidInput as problem:
            return refusal(TeamRefused(str(problem), hint=problem.hint, status=422))

    return answer


async def _not_found(request: Request, _error: Exception) -> Response:
    return reply(Refusal(f"No {request.method} {request.url.path}", "Update Palaver, or check the URL."), 404)


async def _failed(_request: Request, error: Exception) -> Response:
    """Answer an unexpected error without its text, which could contain data."""
    logging.getLogger(__name__).error("A request failed", exc_info=error)
    return reply(Refusal("The server failed", "See its log."), 500)
