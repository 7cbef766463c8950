"""How this very program is called again: from this shell, and by an agent."""

import os
import shlex
import sys
from pathlib import Path
from shutil import which

from palaver.core.home import Home


def command_of(home: Home) -> str:
    """What to type into this shell to run this very program on that home."""

    called = Path(sys.argv[0])
    found = which(called.name)
    if called.name == "__main__.py":
        program = f"{shlex.quote(sys.executable)} -m palaver"
    elif found is not None and Path(found).samefile(called):
        program = called.name
    else:
        program = shlex.quote(str(called))
    return " ".join((*_setting(home), program))


def server_of(home: Home) -> str:
    """What to add to `claude mcp add NAME`, which runs it from anywhere and without this shell's settings.

    Options stand after the name: `-e` takes every word up to the `--` for a setting.
    """
    option = ["-e", *_setting(home)] if _setting(home) else []
    return " ".join((*option, "--", shlex.join([*program_words(), "mcp"])))


def program_words() -> list[str]:
    """What runs this very program from anywhere."""
    called = Path(sys.argv[0]).absolute()
    return [sys.executable, "-m", "palaver"] if called.name == "__main__.py" else [str(called)]


def _setting(home: Home) -> list[str]:
    """The variable that leads to that home, where nothing else does."""
    usual = not os.environ.get("PALAVER_HOME") and home == Home.find()
    return [] if usual else [f"PALAVER_HOME={shlex.quote(str(home.root))}"]
