"""Installation: how something is added to the very environment that Palaver runs in."""

import json
import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, distribution, requires
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

_EXTRA = re.compile(r"""\s*;\s*extra\s*==\s*["'](?P<name>[^"']+)["']""")


def adding(extra: str) -> str:
    """The command that installs what an optional extra of ours needs, with the versions it needs."""
    return f"{_installing()} {shlex.join(_needed(extra))}"


def upgrading(library: str) -> str:
    """The command that installs the newest version of a library."""
    return f"{_installing()} --upgrade {library}"


def renewing() -> str:
    """What installs a newer Palaver in place of this one, as a sentence: from the folder that this one came from, if it
    did: an index need not have ours, and can have another of that name.
    """
    folder, editable = _origin()
    if folder is None:
        return "Install the newer Palaver again, as you installed this one."
    command = f"{_installing()} {'-e ' if editable else ''}{shlex.quote(str(folder))}"
    return f"Install the newer Palaver again: bring {folder} up to date, then run `{command}`."


def _installing() -> str:
    """It names the interpreter: the `pip` of a shell may be another environment's, and one made by uv has none."""
    python = shlex.quote(sys.executable)
    return f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"


def _origin() -> tuple[Path | None, bool]:
    """The folder that we were installed from, and whether we run from there (PEP 610)."""
    try:
        told = json.loads(distribution("palaver").read_text("direct_url.json") or "{}")
    except PackageNotFoundError:
        return None, False
    if "dir_info" not in told:
        return None, False
    return Path(unquote(urlsplit(str(told["url"])).path)), bool(told["dir_info"].get("editable"))


def _needed(extra: str) -> list[str]:
    """Requirements of an extra; the extra itself where we are not installed as a package."""
    try:
        told = requires("palaver") or []
    except PackageNotFoundError:
        told = []
    found = ((_EXTRA.search(each), each) for each in told)
    needed = [each[: match.start()] for match, each in found if match and match["name"] == extra]
    return needed or [f"palaver[{extra}]"]
