"""Shell commands that run this installation of Palaver, for the user's shell and for agents."""

import shlex
import sys
from pathlib import Path
from shutil import which

from palaver.core.home import DEMO_FOLDER, Home


def command_of(home: Home) -> str:
    """Return the shell command that runs Palaver with a given home."""
    called = Path(sys.argv[0])
    found = which(called.name)
    if called.name == "__main__.py":
        program = f"{shlex.quote(sys.executable)} -m palaver"
    elif found is not None and Path(found).samefile(called):
        program = called.name
    else:
        program = shlex.quote(str(called))
    own, demo = (Home(home.root.parent), ["--demo"]) if home.root.name == DEMO_FOLDER else (home, [])
    return " ".join((*_home_setting(own), program, *demo))


def program_words() -> list[str]:
    """Return the words of the command that runs Palaver from any folder."""
    called = Path(sys.argv[0]).absolute()
    return [sys.executable, "-m", "palaver"] if called.name == "__main__.py" else [str(called)]


def _home_setting(home: Home) -> list[str]:
    """Return `PALAVER_HOME=…` in a list if the command needs it to select a home, or else an empty list."""
    return [] if home == Home.default() else [f"PALAVER_HOME={shlex.quote(str(home.root))}"]
