"""Shell commands that install packages into the environment in which Palaver runs."""

import shlex
import sys
from importlib.util import find_spec
from typing import Final

DISTRIBUTION: Final = "palaver-archive"
"""Name on the package index. The command and the import name are `palaver`."""


def install_command(requirement: str, *, upgrade: bool = False) -> str:
    """Return the shell command that installs a requirement into this environment.

    The command uses the current interpreter, because the `pip` of a shell may belong to another environment.
    Environments created by uv do not contain pip, so uv installs packages into them.
    """
    python = shlex.quote(sys.executable)
    installer = f"{python} -m pip install" if find_spec("pip") else f"uv pip install --python {python}"
    return f"{installer} {'--upgrade ' if upgrade else ''}{shlex.quote(requirement)}"


def extra_command(extra: str) -> str:
    """Return the shell command that installs an optional extra of Palaver."""
    return install_command(f"{DISTRIBUTION}[{extra}]")


def upgrade_hint() -> str:
    """Return a sentence with the command that upgrades Palaver."""
    return f"Upgrade Palaver: run `{install_command(DISTRIBUTION, upgrade=True)}`, or update your checkout."
