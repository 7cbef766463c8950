"""Connection to the one server that this machine joined.

Only HTTPS is used, except to this machine itself. Redirects are not followed, so that nothing is sent elsewhere.
"""

import errno
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeVar
from urllib.parse import urlsplit

import msgspec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from msgspec import Struct

from ...core.errors import InvalidInput, TeamRefused, TeamUnreachable
from ...core.runtime import Closing, replacing
from ..protocol import (
    PROTOCOL,
    AccessToken,
    Challenge,
    ChallengeRequest,
    Hello,
    Position,
    Refusal,
    SignedChallenge,
)

if TYPE_CHECKING:
    import httpx2

Reply = TypeVar("Reply")
SECONDS: Final = 30.0
"""Seconds to wait for each part of a reply."""
REFUSED: Final = "The team server refused: "
"""Beginning of the message of a refused request."""
_REPLY_MAX: Final = 32_000_000
"""Maximum bytes of a reply."""
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_EARLY: Final = 60
"""Seconds before its end at which a token is not used any more."""
_UNAUTHORISED: Final = 401
_CONFLICT: Final = 409


class OutOfStep(Exception):
    """Signal: the server has another position of this machine than the batch assumes."""

    def __init__(self, position: Position) -> None:
        super().__init__()
        self.position = position


class _StoredToken(Struct, frozen=True):
    """Token with the machine that got it, and the time at which it expires, in seconds since 1970."""

    device: str
    token: str
    expires: float


def checked_url(url: str) -> str:
    """Return the URL of a server without a slash at its end.

    Raises:
        InvalidInput: The URL is not one of a server, or would send in clear over a network.
    """
    hint = "Give the address of the team server, such as https://palaver.example.com"
    try:
        parts = urlsplit(url.rstrip("/"))
        host, _ = parts.hostname, parts.port
    except ValueError:
        raise InvalidInput(f"Invalid URL: {url}", hint=hint) from None
    if parts.scheme not in {"http", "https"} or not host or parts.query or parts.fragment or parts.username:
        raise InvalidInput(f"Invalid URL: {url}", hint=hint)
    if parts.scheme == "http" and not _is_this_machine(url):
        raise InvalidInput(
            f"{url} is not encrypted", hint="Use https://. Only a server on this machine may use http://."
        )
    return url.rstrip("/")


def join_again(url: str) -> str:
    """Return what a person can do whose machine the server does not accept."""
    return (
        f"Ask your administrator for a new code, then run: palaver team join {url} CODE. "
        "To leave the team instead: palaver team leave --local"
    )


class ServerConnection(Closing):
    """Requests to a server. Each waits for a limited time.

    Tokens are kept in a file, because getting one takes two requests.
    """

    def __init__(
        self, url: str, device: str = "", key: Ed25519PrivateKey | None = None, tokens: Path | None = None,
        seconds: float = SECONDS,
    ) -> None:  # fmt: skip
        """Prepare requests. `device` and `key` are those of this machine, and `tokens` is the file for its token."""
        self._url, self._device, self._key, self._tokens = checked_url(url), device, key, tokens
        self._seconds, self._token = seconds, ""
        self._client: httpx2.Client | None = None

    def hello(self) -> Hello:
        """Return what the server is. Raises `TeamRefused` if it speaks another version of the protocol."""
        hello = self._answered("hello", None, Hello, "")
        if hello.protocol != PROTOCOL:
            older = hello.protocol < PROTOCOL
            raise TeamRefused(
                f"The team server has version {hello.protocol} of the protocol, and this machine {PROTOCOL}",
                hint=f"Update Palaver on {'the server' if older else 'this machine'}.",
            )
        return hello

    def open_post(self, name: str, message: Struct, reply: type[Reply]) -> Reply:
        """Send a request that needs no token. Raises the errors of `post`."""
        return self._answered(name, msgspec.json.encode(message), reply, "")

    def post(self, name: str, message: Struct | bytes | None, reply: type[Reply]) -> Reply:
        """Send a request as this machine, and return the reply.

        Raises:
            OutOfStep: The server answered with its position of this machine.
            TeamRefused: The server refused the request.
            TeamUnreachable: The server did not answer completely.
        """
        body = message if isinstance(message, bytes) else b"" if message is None else msgspec.json.encode(message)
        stored = self._stored_token()
        try:
            return self._answered(name, body, reply, stored or self._new_token())
        except TeamRefused as problem:
            if problem.status != _UNAUTHORISED or not stored:
                raise
        return self._answered(name, body, reply, self._new_token())

    def close(self) -> None:
        """Close the connection."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _stored_token(self) -> str:
        if self._token or self._tokens is None:
            return self._token
        try:
            stored = msgspec.json.decode(self._tokens.read_bytes(), type=_StoredToken)
        except (OSError, msgspec.DecodeError):
            return ""
        if stored.device == self._device and time.time() < stored.expires - _EARLY:
            self._token = stored.token
        return self._token

    def _new_token(self) -> str:
        """Return a new token for the signature of this machine."""
        assert self._key is not None
        try:
            nonce = self.open_post("challenge", ChallengeRequest(self._device), Challenge).nonce
        except TeamRefused as problem:
            if problem.status != _UNAUTHORISED:
                raise
            raise TeamRefused(str(problem), hint=join_again(self._url), status=problem.status) from None
        signature = self._key.sign(f"palaver-team:{nonce}".encode()).hex()
        access = self.open_post("token", SignedChallenge(self._device, nonce, signature), AccessToken)
        self._token = access.token
        if self._tokens is not None:
            stored = _StoredToken(self._device, access.token, time.time() + access.seconds)
            try:
                with replacing(self._tokens) as file:
                    file.write(msgspec.json.encode(stored))
            except OSError:  # The next command asks for another token.
                pass
        return access.token

    def _answered(self, name: str, body: bytes | None, reply: type[Reply], token: str) -> Reply:
        """Send a request, and return the reply. Without `body`, the request only reads."""
        status, content = self.send(name, body, token)
        if status == 200:
            return _decoded(content, reply, self._url)
        if status == _CONFLICT and b'"cursor"' in content:
            raise OutOfStep(_decoded(content, Position, self._url))
        if 300 <= status < 400:
            raise TeamRefused(
                f"{self._url} redirects to another address, and nothing was sent there",
                hint="Ask your administrator for the right address.", status=status,
            )  # fmt: skip
        try:
            refusal = msgspec.json.decode(content, type=Refusal)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise TeamUnreachable(f"{self._url} answered with status {status}", hint="Try again later.") from None
        if status >= 500:
            raise TeamUnreachable(f"{self._url}: {refusal.error}", hint=refusal.hint or "Try again later.")
        raise TeamRefused(f"{REFUSED}{refusal.error}", hint=refusal.hint, status=status)

    def send(self, name: str, body: bytes | None, token: str) -> tuple[int, bytes]:
        """Send one request, and return the status and the content of its reply.

        Raises:
            TeamUnreachable: The server did not answer completely.
        """
        import httpx2

        if self._client is None:
            proxies = not _is_this_machine(self._url)
            self._client = httpx2.Client(timeout=self._seconds, trust_env=proxies, follow_redirects=False)
        headers = {"content-type": "application/json"} | ({"authorization": f"Bearer {token}"} if token else {})
        method, received = "GET" if body is None else "POST", bytearray()
        try:
            with self._client.stream(method, f"{self._url}/v1/{name}", content=body, headers=headers) as response:
                for chunk in response.iter_bytes():
                    received += chunk
                    if len(received) > _REPLY_MAX:
                        raise TeamUnreachable(f"{self._url} answers with too much", hint="Tell your administrator.")
                return response.status_code, bytes(received)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise TeamUnreachable(
                f"{self._url} {self._reason(error)}", hint="Check the address and that the server runs, then try again."
            ) from None

    def _reason(self, error: Exception) -> str:
        """Return why a request got no reply, in plain words."""
        import httpx2

        if isinstance(error, httpx2.TimeoutException):
            return f"did not answer within {self._seconds:g} seconds"
        reason = re.sub(r"^\[Errno -?\d+\] ", "", str(error)) or type(error).__name__
        if reason == os.strerror(errno.ECONNREFUSED):
            return "cannot be reached: no server answers at this address"
        return f"cannot be reached: {reason}"


def _is_this_machine(url: str) -> bool:
    return urlsplit(url).hostname in _LOOPBACK


def _decoded(content: bytes, kind: type[Reply], url: str) -> Reply:
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        hint = "Check the address, and update Palaver on this machine and on the server."
        raise TeamUnreachable(f"{url} answered with something else than a team server", hint=hint) from None
