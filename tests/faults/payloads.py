"""Readers of public lists of hostile input, if the lists are available."""

import json
import tarfile
from functools import cache

import pytest

from ..shared import SHARED

FOLDER = SHARED / "hostile"
needed = pytest.mark.skipif(not FOLDER.exists(), reason="the lists of hostile input are not here")


@cache
def json_files() -> dict[str, bytes]:
    """Yield every file of JSONTestSuite."""
    return {name: data for name, data in _files("jsontestsuite").items() if name.endswith(".json")}


@cache
def naughty() -> list[str]:
    """Return strings that are known to break programs."""
    found: list[str] = json.loads(_files("naughty-strings")["naughty-strings/blns.json"])
    return [each for each in dict.fromkeys(found) if each]


@cache
def traversals() -> list[str]:
    """Return paths that lead out of a folder. `{FILE}` is a placeholder for the target."""
    lists = [data.decode(errors="replace") for name, data in _files("payloads").items() if "traversal" in name]
    return list(dict.fromkeys(line for each in lists for line in each.splitlines() if line))


@cache
def injections() -> list[str]:
    """Return expressions of template engines."""
    [known] = (data.decode(errors="replace") for name, data in _files("payloads").items() if name.endswith(".fuzz"))
    return list(dict.fromkeys(line for line in known.splitlines() if line.strip()))


def _files(name: str) -> dict[str, bytes]:
    with tarfile.open(FOLDER / f"{name}.tar.gz") as packed:
        members = ((member.name, packed.extractfile(member)) for member in packed if member.isfile())
        return {path: content.read() for path, content in members if content}
