"""Write the files and tables of the documentation that follow from tables in the code: `python release/tables.py`."""

import json
from collections.abc import Iterable
from pathlib import Path

from palaver.agents.clients.hook_setup import plugin_hooks
from palaver.agents.conversation_tools import PARAMETERS
from palaver.core.agent_names import NAMES
from palaver.core.config import Config
from palaver.core.hooks import HOOKS, switch_of
from palaver.core.observation import ObservationType
from palaver.core.query import FIELDS

ROOT = Path(__file__).parents[1]


def derived() -> dict[Path, str]:
    """Return the current text of each file with derived content."""
    docs = ROOT / "docs"
    return {
        ROOT / "agents" / "hooks" / "hooks.json": json.dumps(plugin_hooks(), indent=2) + "\n",
        docs / "formats.md": _with_table(docs / "formats.md", "| Agent | Aliases |", _aliases()),
        docs / "search.md": _with_table(docs / "search.md", "| Filter | Keeps | Parameter of the tool |", _filters()),
        docs / "plugin.md": _with_table(docs / "plugin.md", "| Hook | Default | What it does | At most |", _hooks()),
        docs / "observations.md": _with_table(docs / "observations.md", "| Type | Other names |", _types()),
    }


def _with_table(page: Path, header: str, rows: Iterable[str]) -> str:
    """Return the text of a page with new rows below a header and its ruling."""
    before, _, after = page.read_text("utf-8").partition(f"{header}\n")
    ruling, _, after = after.partition("\n")
    return "\n".join([before + header, ruling, *rows, after[after.index("\n\n") + 1 :]])


def _aliases() -> Iterable[str]:
    return (f"| {agent} | {', '.join(f'`{name}`' for name in names)} |" for agent, names in NAMES.items() if names)


def _filters() -> Iterable[str]:
    for attribute, field in FIELDS.items():
        names = ", ".join(f"`{name}`" for name in (f"{field.option} {field.metavar}", *field.aliases))
        parameter = f"`{PARAMETERS[attribute]}`" if attribute in PARAMETERS else ""
        yield f"| {names} | {field.help} | {parameter} |"


def _hooks() -> Iterable[str]:
    for name, hook in HOOKS.items():
        default = "on" if switch_of(name) in Config().hooks else "off"
        yield f"| `{name}` | {default} | {hook.does} | {hook.budget:,} tokens |"


def _types() -> Iterable[str]:
    return (f"| `{kind}` | {', '.join(f'`{name}`' for name in kind.aliases)} |" for kind in ObservationType)


if __name__ == "__main__":
    for path, text in derived().items():
        path.write_text(text, "utf-8")
