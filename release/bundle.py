"""Build the MCP bundle: one .mcpb file that desktop clients install with one click.

python release/bundle.py [FOLDER]

The bundle is a zip file with a manifest, an entry point, the wheel of Palaver, and a `pyproject.toml`. From this file,
uv installs the wheel and its dependencies. Format: MCPB manifest 0.4, https://github.com/modelcontextprotocol/mcpb.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

from palaver.agents.toolset import find_toolset

ROOT = Path(__file__).parents[1]
PARTS = ROOT / "release" / "mcpb"

PROJECT = """\
[project]
name = "palaver-bundle"
version = "{version}"
requires-python = ">=3.11"
dependencies = ["palaver-archive"]

[tool.uv]
package = false

[tool.uv.sources]
palaver-archive = {{ path = "{wheel}" }}
"""


def build_bundle(folder: Path) -> Path:
    """Build the wheel and the bundle around it, and return the path of the bundle in `folder`.

    Raises:
        subprocess.CalledProcessError: The wheel cannot be built.
    """
    manifest = json.loads((PARTS / "manifest.json").read_text("utf-8"))
    manifest["tools"] = [
        {"name": tool.name, "description": tool.description} for tool in find_toolset("conversation").tools
    ]
    folder.mkdir(parents=True, exist_ok=True)
    bundle = folder / f"palaver-{manifest['version']}.mcpb"
    with tempfile.TemporaryDirectory() as scratch, ZipFile(bundle, "w", ZIP_DEFLATED) as archive:
        wheel = _build_wheel(Path(scratch))
        archive.write(wheel, wheel.name)
        archive.write(PARTS / "server.py", "server.py")
        archive.writestr("pyproject.toml", PROJECT.format(version=manifest["version"], wheel=wheel.name))
        archive.writestr("manifest.json", json.dumps(manifest, indent=2))
    return bundle


def _build_wheel(folder: Path) -> Path:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    return wheel


if __name__ == "__main__":
    print(build_bundle(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"))
