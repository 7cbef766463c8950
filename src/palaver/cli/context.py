"""`palaver context`: memories and past sessions of a project for a new session."""

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import click

from palaver.archiver.store import Store
from palaver.core.errors import StoreMissing
from palaver.core.home import Home
from palaver.core.memory import project_namespace
from palaver.core.memory_filter import MemoryFilter
from palaver.core.text import similar_names
from palaver.core.tokens import count
from palaver.observe.memory import SessionContext

from .memory_access import memory_core
from .options import as_json
from .output import print_json, print_message, renderer
from .project_option import folder_of, in_project, namespace_of

_FEW: Final = 3
"""Maximum number of projects to suggest if no project has a similar name."""


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
    error (except in hooks). Text of low trust is omitted, and global memories of agents until you approve them.
    """
    near: list[str] | None = None
    text = ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer().memory_context(sections, chosen.left_out, chosen.contradictions, chosen.digest)
        return count(text)

    try:
        with memory_core() as core:
            namespace = namespace_of(core, project or ".")
            chosen = core.contexts.select(cost, namespace, query, budget)
            known = core.count_by("namespace", MemoryFilter())
        if project and namespace not in known and not Path(folder_of(project)).is_dir():
            near = _nearest(namespace, known)
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
        shown = {"context": text, "token_estimate": chosen.tokens, **counts, "contradictions": chosen.contradictions}
        print_json(shown if near is None else {**shown, "unknown": {"project": project, "nearest": near}})
        return
    if near is not None:
        suggestion = f". Did you mean {' or '.join(near)}?" if near else "."
        print_message(f"Unknown project '{project}'{suggestion}")
    if text:
        click.echo(text, nl=False)
    elif chosen.left_out or chosen.omitted_lines:
        print_message(f"No line fits into {budget} tokens. Use a larger --budget.")
    elif near is not None:
        return
    elif namespace in known:
        _hint(
            f"No memory in {namespace} is both trusted and relevant for a new session.",
            "Sessions start with rules, preferences, decisions and patterns. `palaver recall WORDS` finds others.",
            "Memory files of a repository are omitted until you run `palaver mnemonics allow`.",
        )
    else:
        others = f"Namespaces with memories: {', '.join(list(known)[:5])}." if known else "No memories stored yet."
        _hint(
            f"No memories or trusted observations for {namespace}.",
            f"{others} To store one, run `palaver remember TEXT`.",
        )


def _nearest(namespace: str, known: Iterable[str]) -> list[str] | None:
    """Return similar project names for an unknown name, or None if the project exists but has no memories."""
    with Store.open(Home.find().database) as store:
        archived = {project_namespace(project or cwd) for project, cwd in store.sessions.projects()}
    if namespace in archived:
        return None
    prefix = project_namespace("x").removesuffix("x")
    names = sorted(each.removeprefix(prefix) for each in archived.union(known) if each.startswith(prefix))
    return similar_names(namespace.removeprefix(prefix), names, least=60) if len(names) > _FEW else names


def _hint(*rows: str) -> None:
    """Print the reason for an empty result, unless an agent's hook runs this command."""
    if sys.stderr.isatty() or not _is_hook():
        print_message(*rows)


def _is_hook() -> bool:
    """Return whether an agent's hook runs this command. Hooks have a pipe or a socket as standard input."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or not a file
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
