"""Command line interface: `palaver COMMAND`."""

from .commands import main as main
