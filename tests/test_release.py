"""Files of a release besides the wheel: the MCP registry entry and the MCP bundle."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import jsonschema
import pytest

from palaver import __version__
from palaver.agents.toolset import find_toolset
from palaver.core.home import DISTRIBUTION

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "tests" / "schemas"
HANDSHAKE = [
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
]


def validate(document: object, schema: str) -> None:
    """Check a document against a schema file, and raise `jsonschema.ValidationError` if it does not conform."""
    jsonschema.validate(document, json.loads((SCHEMAS / schema).read_text("utf-8")))


def server_entry() -> dict[str, Any]:
    entry: dict[str, Any] = json.loads((ROOT / "server.json").read_text("utf-8"))
    return entry


def test_server_json_follows_the_registry_schema() -> None:
    """The schema of 2025-12-11 accepts server.json."""
    assert server_entry()["$schema"].endswith("/2025-12-11/server.schema.json")
    validate(server_entry(), "mcp-server-2025-12-11.json")


def test_server_json_schema_rejects_a_missing_transport() -> None:
    """The registry schema rejects an entry without a transport."""
    entry = server_entry()
    del entry["packages"][0]["transport"]

    with pytest.raises(jsonschema.ValidationError, match="transport"):
        validate(entry, "mcp-server-2025-12-11.json")


def test_server_json_names_this_release() -> None:
    """Version and package name in server.json are those of the distribution."""
    (package,) = server_entry()["packages"]

    assert (package["identifier"], package["version"]) == (DISTRIBUTION, __version__)
    assert server_entry()["version"] == __version__


def test_readme_proves_ownership_of_the_registry_name() -> None:
    """README.md contains the ownership line that the registry expects in the package description."""
    assert f"mcp-name: {server_entry()['name']}" in (ROOT / "README.md").read_text("utf-8")


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the unpacked MCP bundle."""
    built, unpacked = tmp_path_factory.mktemp("built"), tmp_path_factory.mktemp("bundle")
    subprocess.run([sys.executable, ROOT / "release" / "bundle.py", built], check=True, capture_output=True)
    with ZipFile(built / f"palaver-{__version__}.mcpb") as archive:
        archive.extractall(unpacked)
    return unpacked


def test_bundle_manifest_follows_its_schema(bundle: Path) -> None:
    """The schema of manifest version 0.4 accepts the manifest, which names this release."""
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))

    validate(manifest, "mcpb-manifest-v0.4.json")
    assert (manifest["manifest_version"], manifest["version"]) == ("0.4", __version__)


def test_bundle_depends_on_the_wheel_beside_it(bundle: Path) -> None:
    """The bundle installs Palaver from the wheel that it contains."""
    (wheel,) = bundle.glob("*.whl")

    assert f'palaver-archive = {{ path = "{wheel.name}" }}' in (bundle / "pyproject.toml").read_text("utf-8")


def test_bundle_serves_the_tools_of_its_manifest(bundle: Path, tmp_path: Path) -> None:
    """The entry point answers an MCP client with the tools that the manifest lists."""
    manifest = json.loads((bundle / "manifest.json").read_text("utf-8"))
    lines = "".join(json.dumps(message) + "\n" for message in HANDSHAKE)
    command = [sys.executable, str(bundle / manifest["server"]["entry_point"])]
    environment = {**os.environ, "PALAVER_HOME": str(tmp_path / "palaver")}

    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdin
        assert server.stdout
        server.stdin.write(lines)
        server.stdin.flush()
        replies = [json.loads(server.stdout.readline()) for _ in range(2)]
        server.stdin.close()

    listed = replies[-1]["result"]["tools"]
    assert [tool["name"] for tool in listed] == [tool["name"] for tool in manifest["tools"]]
    assert len(listed) == len(find_toolset("conversation").tools)
