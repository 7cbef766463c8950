"""Installation: how something is added to the very environment that Palaver runs in."""

import re
import shlex
import sys
from importlib.metadata import PackageNotFoundError, requires
from importlib.util import find_spec

_EXTRA = re.compile(r"""\s*;\s*extra\s*==\s*["'](?P<name>[^"']+)["']""")


def adding(extra: str) -> str:
    """The command that installs what an optional extra of ours needs, with the versions it needs.

    It names the interpreter: the `pip` of a shell may be another environment's, and one made by uv has none.
    """
    python = shlex.quote(sys.executable)
    installer = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{installer} {shlex.join(_needed(extra))}"


def _needed(extra: str) -> list[str]:
    """Requirements of an extra; the extra itself where we are not installed as a package."""
    try:
        told = requires("palaver") or []
    except PackageNotFoundError:
        told = []
    found = ((_EXTRA.search(each), each) for each in told)
    needed = [each[: match.start()] for match, each in found if match and match["name"] == extra]
    return needed or [f"palaver[{extra}]"]
