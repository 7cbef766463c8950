"""Run the conformance suite against real servers of the sample archive: `python -m tests.conformance FOLDER`.

FOLDER gets the suite and the node that it needs. They are installed once, with npm.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import orjson

from palaver.agents.toolset import TOOLSETS
from palaver.core.home import Home

from ..agents.test_output_schemas import CALLS
from ..demo import archived

SUITE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
NODE = "node@22.23.3"
HERE = Path(__file__).parent
REVISIONS = ("2025-11-25", "2026-07-28")
# Scenarios that test messages, not HTTP, and need no tool, prompt or resource of the suite's own server.
OVER_STDIO = {
    "2025-11-25": ("server-initialize", "ping", "tools-list", "resources-list", "prompts-list"),
    "2026-07-28": ("tools-list", "resources-list", "prompts-list", "caching", "sep-2164-resource-not-found"),
}
# Scenarios that need a tool or a prompt of the suite's own server, which fixture_server.py has.
BOTH_REVISIONS = (
    "tools-call-simple-text",
    "tools-call-error",
    "tools-call-with-progress",
    "prompts-get-simple",
    "prompts-get-with-args",
    "completion-complete",
)
WITH_FIXTURES = {
    "2025-11-25": (*BOTH_REVISIONS, "tools-call-elicitation"),
    "2026-07-28": (
        *BOTH_REVISIONS,
        "input-required-result-missing-input-response",
        "input-required-result-result-type",
        "server-stateless",
    ),
}
# The other servers offer only the default toolset. The list has the output schemas of all the others.
WITH_ALL_TOOLSETS = dict.fromkeys(REVISIONS, ("tools-list",))
SERVERS = {
    "http": ("palaver", "mcp", "--http"),
    "stdio": ("tests.conformance.stdio_bridge",),
    "toolsets": ("palaver", "mcp", "--toolset", ",".join(TOOLSETS), "--prefix", "--http"),
    "fixtures": ("tests.conformance.fixture_server",),
}


def main(folder: Path) -> int:
    """Run all scenarios. Return 0 if only the expected ones fail, 1 if others fail, and 2 if the suite cannot run."""
    missing = [name for name in ("node", "npm") if not shutil.which(name)]
    if missing:
        print(f"Nothing was tested: {' and '.join(missing)} not found. Not run: {', '.join(planned())}.")
        print("Install node and npm, then run `make conformance` again.")
        return 2
    try:
        suite = install(folder)
    except subprocess.CalledProcessError as error:
        print(f"Nothing was tested: npm ended with status {error.returncode}. Not run: {', '.join(planned())}.")
        return 2
    failed: list[str] = []
    with tempfile.TemporaryDirectory() as scratch:
        home = archived(Path(scratch))
        failed += [f"TypeScript SDK, {name}" for name in CALLS if not accepts(folder, Path(scratch), home, name)]
        with serving("http", home) as (url, settings):
            for revision in REVISIONS:
                passed = passes(suite, url, revision, settings, "--requirements", revision)
                failed += [] if passed else [f"HTTP, {revision}"]
        for transport, chosen in (("stdio", OVER_STDIO), ("toolsets", WITH_ALL_TOOLSETS), ("fixtures", WITH_FIXTURES)):
            with serving(transport, home) as (url, settings):
                runs = [(revision, name) for revision, scenarios in chosen.items() for name in scenarios]
                for revision, name in runs:
                    only = ("--spec-version", revision, "--scenario", name)
                    if not passes(suite, url, transport if name == "server-stateless" else "", settings, *only):
                        failed.append(f"{transport}, {revision}, {name}")
    print(f"\nFailed: {'; '.join(failed)}" if failed else "\nConformance: only the expected failures.")
    return 1 if failed else 0


def planned() -> list[str]:
    """Return what the command runs."""
    servers = [f"{name}, {revision}" for name in ("HTTP", "stdio", "toolsets", "fixtures") for revision in REVISIONS]
    return [*servers, "TypeScript SDK"]


def install(folder: Path) -> list[str]:
    """Install the suite into a folder and return its command."""
    command = ["npm", "install", "--prefix", str(folder), "--no-save", "--loglevel=error", SUITE, NODE]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    package = SUITE.rpartition("@")[0]
    modules = folder / "node_modules"
    return [str(modules / ".bin" / "node"), str(modules / package / "dist" / "index.js"), "server"]


def passes(suite: list[str], url: str, expected: str, settings: dict[str, str], *options: str) -> bool:
    """Run scenarios, and return whether only those of `expected-failures-{expected}.yml` fail, or none without it."""
    baseline = ["--expected-failures", str(HERE / f"expected-failures-{expected}.yml")] if expected else []
    print(f"\n{url}", *options, flush=True)
    command = [*suite, "--url", url, *baseline, *options]
    return subprocess.run(command, env={**os.environ, **settings}, check=False).returncode == 0


def accepts(folder: Path, scratch: Path, home: Home, toolset: str) -> bool:
    """Return whether the client of the TypeScript SDK, on which the suite depends, accepts all replies of a toolset."""
    print(f"\nTypeScript SDK, {toolset}", flush=True)
    project = scratch / toolset
    project.mkdir()
    (project / "tide.py").write_text("def tide(readings):\n    return max(readings)\n")
    server = orjson.dumps(["-m", "palaver", "mcp", "--toolset", toolset]).decode()
    calls = orjson.dumps(CALLS[toolset]).decode().replace("PROJECT", str(project))
    modules = folder.resolve() / "node_modules"
    environment = {**os.environ, "PALAVER_HOME": str(home.root), "HOME": str(scratch), "NODE_PATH": str(modules)}
    command = [str(modules / ".bin" / "node"), str(HERE / "typescript_client.cjs"), sys.executable, server, calls]
    return subprocess.run(command, cwd=project, env=environment, check=False).returncode == 0


@contextmanager
def serving(transport: str, home: Home) -> Generator[tuple[str, dict[str, str]]]:
    """Start one of `SERVERS` for a home. Yield the address, and variables for the suite."""
    port = free_port()
    environment = {**os.environ, "PALAVER_HOME": str(home.root)}
    origin = f"http://127.0.0.1:{port}"
    with subprocess.Popen([sys.executable, "-m", *SERVERS[transport], str(port)], env=environment) as server:
        try:
            wait_for(port, server)
            token = "" if transport == "stdio" else home.http_token.read_text().strip()
            preload = f"--require={HERE / 'authorize.cjs'}"
            yield f"{origin}/mcp", {"PALAVER_ORIGIN": origin, "PALAVER_TOKEN": token, "NODE_OPTIONS": preload}
        finally:
            server.terminate()


def free_port() -> int:
    """Return a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(port: int, server: subprocess.Popen[bytes]) -> None:
    """Return when the server accepts connections. Raises `RuntimeError` if it ends before, or after 60 seconds."""
    end = time.monotonic() + 60
    while time.monotonic() < end and server.poll() is None:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise RuntimeError("The server did not start.")


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
