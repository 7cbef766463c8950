"""Shared fixtures: an isolated home and no network for every test."""

import gc
import ipaddress
import os
import signal
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from palaver.core.conversation import use_time_zone
from palaver.core.home import Home

from . import demo
from .observe.llm.server import FakeProvider, serving

# The tests of the extra `models` run where it is installed: `make models`.
collect_ignore = [] if find_spec("sentence_transformers") else ["models"]

ORDER = 2026
"""Seed of the test order, equal in every run."""

# A shared machine may be slow, so only the timeout of each test applies. Failures are the same in every run.
settings.register_profile(
    "palaver", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("explore", settings.get_profile("palaver"), derandomize=False)
settings.load_profile("palaver")

HOMES = {
    "HOME": "",
    "USERPROFILE": "",
    "PALAVER_HOME": "palaver",
    "CLAUDE_CONFIG_DIR": ".claude",
    "XDG_CACHE_HOME": ".cache",
    "XDG_CONFIG_HOME": ".config",
    "XDG_DATA_HOME": ".local/share",
    "XDG_STATE_HOME": ".local/state",
}
# Settings and keys of the user who runs the tests; every test starts without them.
PERSONAL = (
    *("ANTHROPIC_", "CLAUDE", "CLINE_", "CODEX_", "COPILOT_", "GOOSE_", "HF_", "OPENCODE_", "PALAVER_", "PI_"),
    *("GROK_", "HERMES_", "OPENCLAW_", "OPENHANDS_", "QWEN_"),
)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`, which rewrites the golden files for review."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Fix the seed of the test order unless another one is given, and let tests interrupt their child processes.

    A shell starts background jobs with SIGINT ignored, which child processes inherit.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("randomly_seed", None) == "default":
        config.option.randomly_seed = ORDER


def pytest_collection_finish() -> None:
    """Freeze loaded objects so that garbage collection during tests is fast."""
    gc.collect()
    gc.freeze()


def move_home(patch: pytest.MonkeyPatch, home: Path) -> None:
    """Point every variable that names a user's folder below `home`."""
    for name in [name for name in os.environ if name.startswith(PERSONAL)]:
        patch.delenv(name)
    for name, below in HOMES.items():
        patch.setenv(name, str(home / below))
    patch.setenv("HF_HUB_OFFLINE", "1")
    patch.setenv("TZ", "UTC")
    time.tzset()


@pytest.fixture(scope="session", autouse=True)
def _session_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Isolate fixtures that outlive one test from the real home."""
    with pytest.MonkeyPatch.context() as patch:
        move_home(patch, tmp_path_factory.mktemp("session-home"))
        yield


@pytest.fixture(autouse=True)
def home(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Isolate each test from the real home."""
    path = tmp_path_factory.mktemp("home")
    move_home(monkeypatch, path)
    return path


@pytest.fixture(autouse=True)
def _system_time_zone() -> Iterator[None]:
    """Restore the time zone of the system after each test."""
    yield
    use_time_zone(None)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """Return the home of the archived sample data, which no test changes."""
    return demo.archived(tmp_path_factory.mktemp("built"))


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    """Server that imitates the APIs of language models."""
    with serving() as server:
        yield server


class NetworkForbidden(RuntimeError):
    """Attempt of a test to use the network."""


def is_local(host: object) -> bool:
    """Return whether a socket host is this machine."""
    if host in {None, "", b"", "localhost", b"localhost"}:
        return True
    name = host.decode() if isinstance(host, bytes) else str(host)
    try:
        return ipaddress.ip_address(name.partition("%")[0]).is_loopback
    except ValueError:
        return False


def forbid_network(event: str, args: tuple[Any, ...]) -> None:
    """Refuse to resolve, connect to or send to anything but loopback and Unix sockets."""
    match event:
        case "socket.getaddrinfo":
            host = args[0]
        case "socket.connect" | "socket.sendto" | "socket.sendmsg" if args[1] and not isinstance(args[1], str | bytes):
            host = args[1][0]
        case _:
            return
    if not is_local(host):
        raise NetworkForbidden(f"{event}: {host!r}")


# An audit hook sees the sockets of every Python library, even of libraries that saved references to functions.
sys.addaudithook(forbid_network)
