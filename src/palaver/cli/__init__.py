"""The command line: `palaver <command>`."""

from .commands import main as main
