"""`palaver context`: what a new session should know."""

import os
import stat
import sys
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import Final

import click

from palaver.archiver.store import Store
from palaver.core.errors import StoreMissing
from palaver.core.home import Home
from palaver.core.memory import project_namespace
from palaver.core.memory_filter import MemoryFilter
from palaver.core.tokens import count
from palaver.observe.memory import SessionContext

from .memory_access import memory_core
from .options import as_json
from .output import complain, print_json, renderer
from .project_option import folder_of, in_project, namespace_of

_FEW: Final = 3
"""So many projects are all named where one is asked for that there is not."""


@click.command()
@in_project
@click.option("--query", default="", metavar="WORDS", help="What the session is about.")
@click.option("--budget", type=int, default=4000, show_default=True, metavar="TOKENS", help="Never more than this.")
@as_json
def context(*, project: str | None, query: str, budget: int, as_json: bool) -> None:
    """Print what a new session in this folder should know: golden rules, preferences, decisions.

    Prints nothing if nothing is relevant; the reason goes to stderr (except in hooks). Little trusted memories, and
    what agents stored for every project without your approval, are left out.
    """

    near: list[str] | None = None
    text = ""

    def cost(chosen: SessionContext) -> int:
        nonlocal text
        sections = [(section.title, section.memories) for section in chosen.sections]
        text = renderer().memory_context(sections, chosen.left_out, chosen.contradictions)
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
        }
        told = {"context": text, "token_estimate": chosen.tokens, **counts, "contradictions": chosen.contradictions}
        print_json(told if near is None else {**told, "unknown": {"project": project, "nearest": near}})
        return
    if near is not None:
        there = f"; there {'is' if len(near) == 1 else 'are'} {', '.join(near)}" if near else ""
        complain(f"No project is called {project}{there}.")
    if text:
        click.echo(text, nl=False)
    elif chosen.left_out:
        complain(f"Nothing fits into {budget} tokens; left out: {chosen.left_out}. Give a larger --budget.")
    elif near is not None:
        return
    elif namespace in known:
        _hint(
            f"Memories are held for {namespace}, but none that is trusted and that a session begins with.",
            "It begins with rules, preferences, decisions and patterns; `palaver recall WORDS` finds other things.",
            "Files that came with a repository are left out until you trust them: `palaver mnemonics allow`.",
        )
    else:
        others = f"They are held for: {', '.join(list(known)[:5])}." if known else "None is held at all yet."
        _hint(f"No memories are held for {namespace}.", f"{others} `palaver remember TEXT` holds one.")


def _nearest(namespace: str, known: Iterable[str]) -> list[str] | None:
    """Projects that are called much like one that there is not; None where there is one, of which no memory tells."""

    with Store.open(Home.find().database) as store:
        archived = {project_namespace(project or cwd) for project, cwd in store.sessions.projects()}
    if namespace in archived:
        return None
    prefix = project_namespace("x").removesuffix("x")
    names = sorted(each.removeprefix(prefix) for each in archived.union(known) if each.startswith(prefix))
    return get_close_matches(namespace.removeprefix(prefix), names) if len(names) > _FEW else names


def _hint(*rows: str) -> None:
    """Tell why there is nothing; an agent's hook, which reads this at each start, must not be told."""
    if sys.stderr.isatty() or not _is_hook():
        complain(*rows)


def _is_hook() -> bool:
    """Whether an agent runs this by itself: it tells its hooks what happened through a pipe or a socket."""
    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
    except (AttributeError, OSError, ValueError):  # closed, or no file
        return True
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
