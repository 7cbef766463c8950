"""A connection on which the headers of a request stay incomplete is closed, and no other one."""

import asyncio
import socket

import pytest
import uvicorn
from uvicorn.server import ServerState

from palaver.agents import loopback_server
from palaver.agents.loopback_server import Message, Receive, Send, TimedProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
SLOW = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 4\r\n\r\n12"


async def answer(_scope: Message, receive: Receive, send: Send) -> None:
    """Answer a request after its whole body."""
    while (await receive()).get("more_body"):
        pass
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


async def received(*pieces: bytes, pause: float = 0.0) -> bytes | None:
    """Send pieces of a request with pauses. Return the reply of a closed connection, or None if it stays open."""
    ours, theirs = socket.socketpair()
    loop, config = asyncio.get_running_loop(), uvicorn.Config(answer, lifespan="off", timeout_keep_alive=60)
    config.load()
    await loop.connect_accepted_socket(lambda: TimedProtocol(config, ServerState(), {}, loop), theirs)
    reader, writer = await asyncio.open_connection(sock=ours)
    for piece in pieces:
        writer.write(piece)
        await asyncio.sleep(pause)
    try:
        return await asyncio.wait_for(reader.read(), 0.6)
    except TimeoutError:
        return None
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("pieces", "closed"),
    [
        ((b"",), True),
        ((REQUEST[:20],), True),
        ((REQUEST[:5], REQUEST[5:10], REQUEST[10:15]), True),
        ((REQUEST, REQUEST[:9]), True),
        ((REQUEST,), False),
        ((REQUEST, REQUEST), False),
        ((SLOW,), False),
    ],
)
def test_only_incomplete_headers_are_limited(
    monkeypatch: pytest.MonkeyPatch, pieces: tuple[bytes, ...], closed: bool
) -> None:
    """The limit begins with the connection or the first byte of a request. Bodies and pauses are not limited."""
    monkeypatch.setattr(loopback_server, "HEADER_SECONDS", 0.2)
    reply = asyncio.run(received(*pieces, pause=0.02))
    assert (reply is not None) is closed
