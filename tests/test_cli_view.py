"""Tests of `palaver view` in a process of its own."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager

import httpx2
import pytest
from click.testing import CliRunner

from palaver.cli import main
from palaver.core.home import Home


@contextmanager
def viewed(home: Home, *arguments: str) -> Generator[tuple[subprocess.Popen[str], str, httpx2.Client]]:
    """Start the command. Yield the process, the printed link, and a client of its port."""
    command = [sys.executable, "-m", "palaver", "view", "--no-browser", *arguments]
    environment = {**os.environ, "PALAVER_HOME": str(home.root)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            link = process.stderr.readline().split()[-1]
            host = re.fullmatch(r"http://([^/]+:(\d+))/view/enter.*", link)
            assert host is not None
            with httpx2.Client(base_url=f"http://127.0.0.1:{host[2]}", headers={"host": host[1]}) as client:
                yield process, link, client
        finally:
            process.kill()


def opened(link: str, client: httpx2.Client) -> tuple[str, str]:
    """Open a link. Return the address to which it leads, and the page."""
    entered = client.get(link.partition("/view")[1] + link.partition("/view")[2])
    cookie = entered.headers["set-cookie"].partition(";")[0]
    return entered.headers["location"], client.get(entered.headers["location"], headers={"cookie": cookie}).text


@pytest.mark.parametrize(
    ("words", "location"),
    [((), "/view/"), (("OBS-18",), "/view/items/obs-18"), (("a", "b"), "/view/find?q=a%20b")],
    ids=str,
)
def test_the_link_shows_what_was_asked_for(built: Home, words: tuple[str, ...], location: str) -> None:
    with viewed(built, *words) as (_, link, client):
        assert opened(link, client)[0] == location


def test_the_terminal_shows_the_next_link(built: Home) -> None:
    with viewed(built, "--read-only") as (process, link, client):
        assert "Recent sessions" in opened(link, client)[1]
        assert process.stderr is not None
        assert process.stderr.readline() == "The link works once. Press Ctrl-C to stop.\n"
        following = process.stderr.readline().split()[-1]
        assert following != link
        assert "Recent sessions" in opened(following, client)[1]


def test_ctrl_c_ends_the_viewer(built: Home) -> None:
    with viewed(built) as (process, _, _client):
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 130


def test_a_used_port_is_reported(built: Home) -> None:
    with viewed(built) as (_, link, _client):
        port = link.partition("/view")[0].rpartition(":")[2]
        result = CliRunner().invoke(
            main, ["view", "--no-browser", "--port", port], env={"PALAVER_HOME": str(built.root)}
        )

    assert result.exit_code == 2
    assert f"Port {port} is in use" in result.stderr


def test_a_port_that_another_program_uses_over_ipv6_is_reported(built: Home) -> None:
    """Browsers could connect to the other program, which would get the link."""
    with socket.socket(socket.AF_INET6, socket.SOCK_STREAM) as other_program:
        try:
            other_program.bind(("::1", 0))
        except OSError:
            pytest.skip("This machine has no IPv6")
        other_program.listen()
        port = other_program.getsockname()[1]

        arguments = ["view", "--no-browser", "--port", str(port)]
        result = CliRunner().invoke(main, arguments, env={"PALAVER_HOME": str(built.root)})

    assert result.exit_code == 2
    assert f"Port {port} of ::1 is in use by another program" in result.stderr
    assert "/view/enter" not in result.stderr


def test_the_link_works_over_ipv6(built: Home) -> None:
    with viewed(built) as (_, link, client):
        host = client.headers["host"]
        address = f"http://[::1]:{host.rpartition(':')[2]}"
        try:
            answer = httpx2.get(address + link.partition(host)[2], headers={"host": host})
        except httpx2.ConnectError:
            pytest.skip("This machine has no IPv6")

    assert answer.status_code == 303
