"""Gate of the viewer: checks that protect the pages from other web pages, other programs and other users.

A request passes if its Host is the viewer's own, if no other page sent it (Sec-Fetch-Site and Origin), and if it has
the cookie that a one-time link sets. Cookies do not distinguish ports: the browser sends the cookie to servers on other
ports of the same host, and the pages of those count as same-site. So the host has a random name where browsers resolve
it, and `same-site` requests are refused. A POST also needs the form token, which only the viewer's pages contain.
"""

import hmac
import secrets
from collections.abc import Callable
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs, quote

from ..agents.loopback_server import VIEWER_PATH, App, Message, Receive, Send

BASE: Final = VIEWER_PATH
"""Path below which all pages are served."""
HOME: Final = f"{BASE}/"
"""Path of the first page."""
TOKEN_FIELD: Final = "form_token"  # noqa: S105 - the name of a field
"""Name of the form field with the form token."""
_BODY_MAX: Final = 1_000_000
"""Maximum bytes of a form."""
HEADERS: Final = (
    (
        b"content-security-policy",
        (
            b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
            b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        ),
    ),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    # With `no-referrer`, browsers would send `Origin: null` with forms of the viewer's own pages.
    (b"referrer-policy", b"same-origin"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
"""Headers of every answer."""


class Access:
    """Secrets of one running viewer: the cookie, the form token, and the one-time token of the current link."""

    def __init__(self, host: str, port: int) -> None:
        self.origin = f"http://{host}:{port}"
        self.authority = f"{host}:{port}"
        self.cookie_name = f"palaver-{port}"
        self.cookie, self.form_token = secrets.token_urlsafe(32), secrets.token_urlsafe(32)
        self._one_time = secrets.token_urlsafe(32)

    def link(self, target: str = HOME) -> str:
        """Return the link that opens the viewer once, and then shows the page `target`."""
        goal = "" if target == HOME else f"&to={quote(target, safe='')}"
        return f"{self.origin}{BASE}/enter?t={self._one_time}{goal}"

    def redeem(self, token: str) -> bool:
        """Return whether this is the current one-time token, and replace it if it is."""
        if not hmac.compare_digest(token.encode(), self._one_time.encode()):
            return False
        self._one_time = secrets.token_urlsafe(32)
        return True


class Gate:
    """ASGI application that forwards only requests of the viewer's own pages to the wrapped application."""

    def __init__(self, app: App, access: Access, entered: Callable[[], None]) -> None:
        """Wrap `app`. `entered` is called when a one-time link was used, so that the next link can be shown."""
        self._app, self._access, self._entered = app, access, entered

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Forward a request, or answer with status 403. Connections other than HTTP are refused."""
        if scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        if refusal := refusal_of(scope, self._access.authority, self._access.origin):
            await _answer(send_safely, 403, refusal)
        elif scope["path"] == f"{BASE}/enter":
            await self._enter(scope, send_safely)
        elif not self._has_cookie(scope):
            await _answer(send_safely, 403, "Open the viewer with the link that Palaver printed when it started.")
        elif scope["method"] == "POST":
            await self._forward_form(scope, receive, send_safely)
        else:
            await self._app(scope, receive, send_safely)

    async def _enter(self, scope: Message, send: Send) -> None:
        """Redeem a one-time link: set the cookie and redirect to the requested page."""
        query = parse_qs(scope["query_string"].decode("ascii", "replace"))
        if scope["method"] != "GET" or not self._access.redeem(query.get("t", [""])[0]):
            await _answer(send, 403, "This link was used before. Use the newest link that Palaver printed.")
            return
        target = query.get("to", [HOME])[0]
        target = target if target.startswith(HOME) else HOME
        cookie = f"{self._access.cookie_name}={self._access.cookie}; Path=/; HttpOnly; SameSite=Strict"
        headers = [
            (b"location", quote(target, safe="/?=&%#:@!$'()*+,;~").encode()),
            (b"set-cookie", cookie.encode()),
            (b"content-length", b"0"),
        ]
        await send({"type": "http.response.start", "status": 303, "headers": headers})
        await send({"type": "http.response.body", "body": b""})
        self._entered()

    def _has_cookie(self, scope: Message) -> bool:
        for header in _values(scope, b"cookie"):
            try:
                cookie = SimpleCookie(header).get(self._access.cookie_name)
            except CookieError:
                continue
            if cookie is not None and hmac.compare_digest(cookie.value.encode(), self._access.cookie.encode()):
                return True
        return False

    async def _forward_form(self, scope: Message, receive: Receive, send: Send) -> None:
        """Forward a form that contains the form token, or answer with status 403."""
        body = b""
        while True:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            if len(body) > _BODY_MAX:
                await _answer(send, 413, "This form is too long.")
                return
            if not message.get("more_body"):
                break
        tokens = parse_qs(body.decode("utf-8", "replace")).get(TOKEN_FIELD, [])
        if len(tokens) != 1 or not hmac.compare_digest(tokens[0].encode(), self._access.form_token.encode()):
            await _answer(send, 403, "This form does not belong to the running viewer. Reload the page and try again.")
            return
        pending = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return pending.pop() if pending else await receive()

        await self._app(scope, replay, send)


def refusal_of(scope: Message, authority: str, origin: str) -> str:
    """Return why a request is refused before its cookie is checked, or an empty text.

    Args:
        scope: Scope of the request.
        authority: Host, with its port, of the pages.
        origin: Origin of the pages.
    """
    if _values(scope, b"host") != [authority]:
        return "This address does not belong to the viewer."
    if any(site not in {"same-origin", "none"} for site in _values(scope, b"sec-fetch-site")):
        return "Another page sent this request. Type or paste the address instead."
    if scope["method"] not in {"GET", "HEAD", "POST"}:
        return "This method is not allowed."
    origins = _values(scope, b"origin")
    if any(sent != origin for sent in origins) or (scope["method"] == "POST" and not origins):
        return "Another page sent this request."
    return ""


def _values(scope: Message, name: bytes) -> list[str]:
    return [value.decode("latin-1") for header, value in scope["headers"] if header == name]


async def _answer(send: Send, status: int, text: str) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8")]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": f"{text}\n".encode()})
