"""Hint of `palaver install` about the plugin for Claude Code."""

import os
import shlex
from pathlib import Path

from palaver import agents
from palaver.agents.clients.hook_setup import has_claude_plugin
from palaver.core.home import Home

from .program import command_of


def marketplace() -> Path:
    """Return the plugin marketplace for Claude Code: the folder of the installed package, or the checkout."""
    return Path(agents.__file__).parents[1]


def plugin_hint(home: Home) -> str:
    """Return how to install the plugin. If it is installed, return how to remove the server entry that duplicates it.

    The text is empty if PALAVER_HOME is set, because Claude Code would have to be started with the same variable.
    """
    if os.environ.get("PALAVER_HOME"):
        return ""
    remove = f"{command_of(home)} install claude-code --remove"
    if has_claude_plugin():
        return f"Claude Code: the plugin lists the tools too. Remove this entry: {remove}"
    add = f"claude plugin marketplace add {shlex.quote(str(marketplace()))}"
    commands = f"{add} && claude plugin install palaver@palaver && {remove}"
    return f"The plugin for Claude Code adds an agent and hooks. To use it instead of this entry:\n  {commands}"
