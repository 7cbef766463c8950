"""`palaver context`: what a new session should know."""

from __future__ import annotations

import sys

import click

from palaver.core.errors import StoreMissing

from .held import in_project, memory_core, namespace_of
from .output import as_json, complain, print_json, renderer


@click.command()
@in_project
@click.option("--query", default="", metavar="WORDS", help="What the session is about.")
@click.option("--budget", type=int, default=4000, show_default=True, metavar="TOKENS", help="Never more than this.")
@as_json
def context(*, project: str | None, query: str, budget: int, as_json: bool) -> None:
    """Print what a new session in this folder should know: golden rules, preferences, decisions.

    Prints nothing where nothing is relevant; why that is, it says at a terminal. What is little trusted is left out.
    """
    from palaver.core.memory_filter import MemoryFilter

    namespace = namespace_of(project or ".")
    try:
        with memory_core() as core:
            chosen = core.contexts.choose(namespace, query, budget)
            known = core.memories.count_by("namespace", MemoryFilter())
    except StoreMissing as missing:
        if as_json:
            raise
        _hint(str(missing), missing.hint)
        return
    sections = [(section.title, section.memories) for section in chosen.sections]
    text = renderer().memory_context(sections, chosen.left_out, chosen.contradictions)
    if as_json:
        counts = {"memory_count": chosen.memories, "golden_rule_count": chosen.golden, "left_out": chosen.left_out}
        told = {"context": text, "token_estimate": chosen.tokens, **counts, "contradictions": chosen.contradictions}
        print_json(told)
    elif text:
        click.echo(text, nl=False)
    elif chosen.left_out:
        complain(f"Nothing fits into {budget} tokens; left out: {chosen.left_out}. Give a larger --budget.")
    elif namespace in known:
        _hint(
            f"Memories are held for {namespace}, but none that is trusted and that a session begins with.",
            "It begins with rules, preferences, decisions and patterns; `palaver recall WORDS` finds other things.",
        )
    else:
        others = f"They are held for: {', '.join(list(known)[:5])}." if known else "None is held at all yet."
        _hint(f"No memories are held for {namespace}.", f"{others} `palaver remember TEXT` holds one.")


def _hint(*rows: str) -> None:
    """Tell a person why there is nothing; an agent's hook, which reads this at each start, must not be told."""
    if sys.stderr.isatty():
        complain(*rows)
