"""`palaver context`: memories and past sessions of a project for a new session."""

import os
import stat
import sys
from pathlib import Path

import click

from palaver.core.errors import StoreMissing
from palaver.core.memory import PROJECT
from palaver.core.memory_filter import MemoryFilter
from palaver.core.tokens import count
from palaver.observe.memory import SessionContext

from .memory_access import memory_core
from .options import as_json
from .output import print_json, print_message, print_page, renderer
from .project_option import folder_of, in_project, is_folder, known_namespaces_of, namespace_of


@click.command()
@in_project
@click.option("--query", default="", metavar="WORDS", help="Topic of the session.")
@click.option(
    "--budget", type=int, default=1500, show_default=True, metavar="TOKENS", help="Maximum tokens in the output."
)
@as_json
def context(*, project: str | None, query: str, budget: int, as_json: bool) -> None:
    """Print what a new session in this folder should know.

    Golden rules come first, then other memories, decisions in force, results of the last sessions, and their files.
    `palaver show ID` prints the details of a line. If there is nothing to print, the reason is printed to standard
    error (except in hooks). Text of low trust is omitted. Global memories of agents are omitted until you approve them.
    """
    text = ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer().memory_context(sections, chosen.left_out, chosen.contradictions, chosen.digest)
        return count(text)

    try:
        with memory_core() as core:
            # A hook can start in a folder that has no session yet.
            exists = not project or Path(folder_of(project)).is_dir()
            namespaces = (namespace_of(core, project or "."),) if exists else known_namespaces_of(core, project or "")
            # A name means all folders with this name, as in `palaver sessions`. A folder means only itself.
            is_name = bool(project) and not is_folder(project or "")
            namespace = namespaces[0]
            chosen = core.contexts.select(cost, namespace, query, budget, namesakes=is_name)
            known = core.count_by("namespace", MemoryFilter())
    except StoreMissing as missing:
        if as_json:
            raise
        _hint(str(missing), missing.hint)
        return
    if as_json:
        counts = {
            "memory_count": chosen.memories,
            "golden_rule_count": chosen.golden_rules,
            "left_out": chosen.left_out,
            "digest_lines": chosen.digest_lines,
        }
        print_json(
            {"context": text, "token_estimate": chosen.tokens, **counts, "contradictions": chosen.contradictions}
        )
        return
    if text:
        print_page(text)
    elif chosen.left_out or chosen.omitted_lines:
        print_message(f"No line fits into {budget} tokens. Use a larger --budget.")
    elif not known.keys().isdisjoint(namespaces):
        _hint(
            f"No memory in {_shown(namespace)} is both trusted and relevant for a new session.",
            "Sessions start with rules, preferences, decisions and patterns. `palaver recall WORDS` finds others.",
            "Memory files of a repository are omitted until you run `palaver mnemonics allow`.",
        )
    else:
        others = f"Namespaces with memories: {', '.join(list(known)[:5])}." if known else "No memories stored yet."
        _hint(
            f"No memories or trusted observations for {_shown(namespace)}.",
            f"{others} To store one, run `palaver remember TEXT`.",
        )


def _shown(namespace: str) -> str:
    """Return the text for a namespace in messages, such as `project palaver` or `global`."""
    return f"project {namespace.removeprefix(PROJECT)}" if namespace.startswith(PROJECT) else namespace


def _hint(*rows: str) -> None:
    """Print the reason for an empty result, unless the hook of an agent runs this command."""
    if sys.stderr.isatty() or not _is_hook():
        print_message(*rows)


def _is_hook() -> bool:
    """Return whether the hook of an agent runs this command. Hooks have a pipe or a socket as standard input."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # Standard input is closed or is not a file.
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
