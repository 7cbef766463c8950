"""Tests for `palaver mcp --http`: agents/http_server.py and agents/http_server.py in a separate process."""

import fcntl
import json
import os
import re
import secrets
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Coroutine, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from errno import EPERM
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.subscriptions import ResourcesListChanged
from mcp_types import ResourceListChangedNotification, TextContent

from palaver.agents.http_server import BearerGate, load_token
from palaver.agents.loopback_server import Message
from palaver.archiver.ingest.transcripts import in_paths
from palaver.core.errors import ConfigInvalid
from palaver.core.home import Home
from palaver.observe.pipeline import Pipeline

from .. import demo

ERAS = ["legacy", "2026-07-28"]
COMMAND = (sys.executable, "-m", "palaver", "mcp", "--http")
Scenario = Callable[[Client], Coroutine[Any, Any, None]]
PING: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "0"}},
}


class Served(NamedTuple):
    """Running server."""

    port: int
    token: str
    process: subprocess.Popen[str]
    viewer: str

    @property
    def url(self) -> str:
        """Address of the server."""
        return f"http://127.0.0.1:{self.port}/mcp"


@contextmanager
def serving(home: Path, *options: str) -> Generator[Served]:
    """Start a server on a free port."""
    environment = dict(os.environ) | {"PALAVER_HOME": str(home)}
    with subprocess.Popen([*COMMAND, "0", *options], env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            address = re.search(r"http://127\.0\.0\.1:(\d+)/mcp\.", process.stderr.readline())
            token = process.stderr.readline().rpartition("Authorization: Bearer ")[2].strip()
            process.stderr.readline()  # the place of the token
            viewer = process.stderr.readline().split()[-1]
            assert address is not None
            yield Served(int(address[1]), token, process, viewer)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Home with the archived demo data."""
    return demo.archived(tmp_path_factory.mktemp("http"))


@pytest.fixture(scope="module")
def server(archive: Home) -> Iterator[Served]:
    """Server of the demo data."""
    with serving(archive.root) as served:
        yield served


def connected(server: Served, era: str, scenario: Scenario) -> None:
    """Run the scenario with a client that sends the token."""

    async def run() -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(server.url, http_client=http), mode=era) as client,
        ):
            await scenario(client)

    anyio.run(run)


def status(server: Served, headers: dict[str, str], *, method: str = "POST") -> int:
    """Return the status of a request with these headers only."""
    connection = HTTPConnection("127.0.0.1", server.port, timeout=60)
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    connection.putrequest(method, "/mcp", skip_host="Host" in headers)
    body = json.dumps(PING).encode()
    for name, value in (*given.items(), ("Content-Length", str(len(body)))):
        connection.putheader(name, value)
    connection.endheaders(body)
    found = connection.getresponse().status
    connection.close()
    return found


@pytest.mark.parametrize("era", ERAS)
def test_both_protocol_eras_are_served(server: Served, era: str) -> None:
    """A client with the token uses tools, resources and prompts as over standard input and output."""

    async def scenario(client: Client) -> None:
        assert [tool.name for tool in (await client.list_tools()).tools] == ["search", "get_observations", "read"]
        result = await client.call_tool("search", {"query": "sqlite or json files"})
        [content] = result.content
        assert isinstance(content, TextContent)
        assert content.text.startswith("## Search Results (")
        listed = (await client.list_resources()).resources
        assert len(listed) == 7
        await client.read_resource(listed[0].uri)
        assert len((await client.list_prompts()).prompts) == 2

    connected(server, era, scenario)


@pytest.mark.parametrize("era", ERAS)
def test_a_client_is_notified_of_a_new_session(tmp_path: Path, era: str) -> None:
    """The notification arrives although another client, which listed resources too, has disconnected."""
    home, arrived = demo.archived(tmp_path), anyio.Event()

    async def received(message: object) -> None:
        if isinstance(message, ResourceListChangedNotification):
            arrived.set()

    async def wait(client: Client) -> None:
        if era == "legacy":
            await arrived.wait()
            return
        async with client.listen(resources_list_changed=True) as subscription:
            await anyio.to_thread.run_sync(archive_another_session, home)
            assert await anext(aiter(subscription)) == ResourcesListChanged()

    async def run(server: Served) -> None:
        headers = {"Authorization": f"Bearer {server.token}"}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(server.url, http_client=http), mode=era, message_handler=received) as client,
        ):
            await client.list_resources()
            if era == "legacy":
                await anyio.to_thread.run_sync(archive_another_session, home)
            with anyio.fail_after(60):
                await wait(client)
            assert len((await client.list_resources(cache_mode="bypass")).resources) == 8

    async def leave(client: Client) -> None:
        await client.list_resources()

    with serving(home.root) as server:
        connected(server, "legacy", leave)
        anyio.run(run, server)


def archive_another_session(home: Home) -> None:
    """Archive a session of one exchange."""
    file = home.root.parent / "projects" / "-home-demo-tide-clock" / "7e57ab1e-0000-4000-8000-000000000001.jsonl"
    common = {"sessionId": file.stem, "cwd": "/home/demo/tide-clock", "version": "2.1.38", "isSidechain": False}
    question = {"role": "user", "content": "Which duck is on the clock?"}
    answer = {"role": "assistant", "model": "m", "content": [{"type": "text", "text": "A mallard."}]}
    lines = [
        {**common, "type": "user", "uuid": "u1", "parentUuid": None, "timestamp": "2026-04-01T10:00:00.000Z"},
        {**common, "type": "assistant", "uuid": "u2", "parentUuid": "u1", "timestamp": "2026-04-01T10:00:05.000Z"},
    ]
    messages = zip(lines, (question, answer), strict=True)
    file.write_text("".join(json.dumps({**line, "message": message}) + "\n" for line, message in messages))
    with Pipeline(home) as pipeline:
        pipeline.run(in_paths([file]))


def test_clients_are_served_at_the_same_time(server: Served) -> None:
    """Many calls of two clients are all answered."""

    async def run() -> None:
        replies: list[bool] = []

        async def ask(era: str) -> None:
            headers = {"Authorization": f"bearer {server.token}"}  # the scheme is not case-sensitive
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(server.url, http_client=http), mode=era) as client,
            ):
                replies.extend([(await client.call_tool("search", {"query": "tides"})).is_error for _ in range(5)])

        async with anyio.create_task_group() as group:
            for era in ERAS:
                group.start_soon(ask, era)
        assert replies == [False] * 10

    anyio.run(run)


def test_a_request_without_the_token_is_refused(server: Served) -> None:
    """Only the complete token is accepted, exactly once, and in no other place."""
    good = f"Bearer {server.token}"
    assert status(server, {"Authorization": good}) == 200
    for value in (
        "",
        "Bearer",
        "Bearer ",
        f"Basic {server.token}",
        server.token,
        good[:-1],
        f"{good}x",
        f"Bearer {server.token} {server.token}",
        "Bearer é",
    ):
        assert status(server, {"Authorization": value}) == 401, value
    assert status(server, {}) == 401
    assert status(server, {"Cookie": f"token={server.token}"}) == 401
    for method in ("GET", "DELETE", "OPTIONS"):
        assert status(server, {}, method=method) == 401


def test_a_foreign_host_or_origin_is_refused(server: Served) -> None:
    """A web page gets no reply, even if it knows the token and its name resolves to this machine."""
    token = {"Authorization": f"Bearer {server.token}"}
    here = f"127.0.0.1:{server.port}"
    assert status(server, {**token, "Host": here}) == 200
    assert status(server, {**token, "Host": f"localhost:{server.port}", "Origin": f"http://{here}"}) == 200
    for host in ("evil.example.com", f"evil.example.com:{server.port}", "127.0.0.1", "127.0.0.1:1", f"{here}.evil.com"):
        assert status(server, {**token, "Host": host}) == 421, host
    for origin in ("http://evil.example.com", "null", f"https://{here}", f"http://{here}.evil.com", "http://127.0.0.1"):
        assert status(server, {**token, "Host": here, "Origin": origin}) == 403, origin


def test_only_this_machine_is_served(server: Served) -> None:
    """The server listens on the loopback address and on no other address of the machine."""
    with socket.socket() as other:
        other.settimeout(5)
        assert other.connect_ex(("127.0.0.2", server.port)) != 0


def test_the_token_is_created_once(tmp_path: Path) -> None:
    """The token is stored in a file that only its owner can read. A damaged file is replaced."""
    home = Home(tmp_path / "palaver")
    token = load_token(home)
    assert len(token) >= 43
    assert load_token(home) == token
    assert stat.S_IMODE(home.http_token.stat().st_mode) == 0o600
    home.http_token.chmod(0o644)
    assert load_token(home) == token
    assert stat.S_IMODE(home.http_token.stat().st_mode) == 0o600
    for damaged in ("", "short", "two words that are longer than the shortest token"):
        home.http_token.write_text(damaged)
        assert load_token(home) not in {token, damaged}


def test_the_token_needs_no_hard_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is created on file systems without hard links, such as exFAT."""

    def refuse(*_arguments: object, **_named: object) -> None:
        raise PermissionError(EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(Path, "hardlink_to", refuse)
    home = Home(tmp_path / "palaver")

    assert load_token(home) == home.http_token.read_text().strip()


def test_a_start_waits_until_another_has_stored_the_token(tmp_path: Path) -> None:
    """A process that finds an empty file waits for the lock of the one that writes the token."""
    home, token = Home(tmp_path / "palaver"), "t" * 43
    home.make()
    with home.http_token.open("wb") as file, ThreadPoolExecutor() as pool:
        fcntl.flock(file, fcntl.LOCK_EX)
        second = pool.submit(load_token, home)
        with pytest.raises(TimeoutError):
            second.result(timeout=0.2)
        file.write(token.encode())
        file.flush()
        fcntl.flock(file, fcntl.LOCK_UN)
        assert second.result(timeout=30) == token


def test_an_unusable_file_of_the_token_is_an_error(tmp_path: Path) -> None:
    """The error names the file and the remedy."""
    home = Home(tmp_path)
    home.http_token.mkdir()
    with pytest.raises(ConfigInvalid, match=r"The token file .*/http_token cannot be used: .*") as failure:
        load_token(home)
    assert failure.value.hint == "Delete the file, and start again."


def test_a_read_only_server_stores_no_token(tmp_path: Path) -> None:
    """In read-only mode the token is valid for one process, and no file is written."""
    home = Home(tmp_path / "palaver", read_only=True)
    assert load_token(home) != load_token(home)
    assert not home.root.exists()


def test_a_port_in_use_is_an_error_with_a_remedy(server: Served, archive: Home) -> None:
    """The second server on a port ends with a usage error."""
    environment = dict(os.environ) | {"PALAVER_HOME": str(archive.root)}
    done = subprocess.run(
        [*COMMAND, str(server.port)], env=environment, capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 2
    assert done.stderr == (
        f"palaver: Port {server.port} is in use\nGive another one, or 0 for any free port: palaver mcp --http PORT\n"
    )


def test_viewer_has_a_gate_of_its_own(archive: Home) -> None:
    """The token of MCP clients opens no page, and the cookie of the viewer calls no tool."""
    with serving(archive.root) as server, httpx2.Client(base_url=f"http://127.0.0.1:{server.port}") as client:
        host, _, path = server.viewer.removeprefix("http://").partition("/")
        own = {"host": host, "Authorization": f"Bearer {server.token}"}
        form = {"deletion": "1", "form_token": server.token}
        refused = [
            client.get("/view/", headers=own),
            client.post("/view/deletions/undo", data=form, headers={**own, "origin": f"http://{host}"}),
        ]
        entered = client.get(f"/{path}", headers={"host": host})
        cookie = {"cookie": entered.headers["set-cookie"].partition(";")[0]}
        page = client.get("/view/", headers={"host": host, **cookie})
        call = client.post("/mcp", json=PING, headers=cookie)

    assert [answer.status_code for answer in refused] == [403, 403]
    assert (entered.status_code, page.status_code) == (303, 200)
    assert call.status_code == 401


@pytest.mark.skipif(os.name == "nt", reason="signals are sent differently there")
def test_ctrl_c_ends_the_server(tmp_path: Path) -> None:
    """An interrupt ends the server without a traceback, even while a client listens to a stream."""
    with serving(tmp_path) as server:

        async def run() -> None:
            headers = {"Authorization": f"Bearer {server.token}"}
            async with (
                httpx2.AsyncClient(headers=headers, timeout=60) as http,
                Client(streamable_http_client(server.url, http_client=http), mode="2026-07-28") as client,
                client.listen(resources_list_changed=True),
            ):
                server.process.send_signal(signal.SIGINT)
                await anyio.to_thread.run_sync(server.process.wait)

        anyio.run(run)
        assert server.process.stderr is not None
        log = server.process.stderr.read()
    assert (server.process.returncode, log) == (130, "\npalaver: stopped.\n")


def test_two_first_starts_serve_the_same_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that starts while another one creates the token serves the token in the file."""
    home, found = Home(tmp_path / "palaver"), list[str]()
    create = secrets.token_urlsafe

    def create_second(size: int) -> str:
        monkeypatch.setattr(secrets, "token_urlsafe", create)
        found.append(load_token(home))  # The other process, after this one found no file.
        return create(size)

    monkeypatch.setattr(secrets, "token_urlsafe", create_second)
    found.append(load_token(home))

    assert found == [home.http_token.read_text().strip()] * 2
    assert [path.name for path in home.root.iterdir()] == ["http_token"]


def test_only_http_passes_the_gate() -> None:
    """A connection of another kind, such as a websocket, does not reach the server, but its start and end do."""
    passed: list[str] = []
    sent: list[Message] = []

    async def app(scope: Message, _receive: object, _send: object) -> None:
        passed.append(scope["type"])

    async def receive() -> Message:
        raise AssertionError

    async def send(message: Message) -> None:
        sent.append(message)

    async def run() -> None:
        for kind in ("websocket", "lifespan", "other"):
            await BearerGate(app, "x" * 43)({"type": kind, "headers": []}, receive, send)

    anyio.run(run)
    assert passed == ["lifespan"]
    assert sent == [{"type": "websocket.close", "code": 1008}]


@pytest.mark.parametrize("kind", ["pipe", "folder", "device"])
def test_a_token_file_that_is_no_regular_file_is_refused(tmp_path: Path, kind: str) -> None:
    """A pipe, a folder or a device in place of the token file is an error, and is not waited for."""
    home = Home(tmp_path)
    match kind:
        case "pipe":
            os.mkfifo(home.http_token)
        case "folder":
            home.http_token.mkdir()
        case _:
            home.http_token.symlink_to("/dev/zero")
    with pytest.raises(ConfigInvalid, match="cannot be used"):
        load_token(home)
