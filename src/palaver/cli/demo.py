"""Demo data: a small sample archive in a separate home, never mixed with the user's archive."""

from typing import Final

from palaver.archiver.store import Store
from palaver.core.errors import DemoOnly, PalaverError
from palaver.core.home import DEMO, Home

from .program import command_of

DEMO_FOLDER: Final = "demo"
"""Name of the folder with the demo home, inside the user's home."""


def refuse_demo(home: Home) -> None:
    """Raise `PalaverError` for the demo home, in which the user's transcripts must not be archived."""
    if is_demo(home):
        hint = "To archive your own transcripts, run `unset PALAVER_HOME`, then `palaver up`."
        raise PalaverError(f"{home.root} contains demo data, which must not be mixed with your transcripts", hint=hint)


def refuse_demo_only(home: Home, arguments: str) -> None:
    """Raise `DemoOnly` if only demo data is archived. `arguments` end the command in the hint, such as `fix ERROR`."""
    demo = Home(home.root / DEMO_FOLDER, home.read_only)
    if demo.has_database and home.is_new:
        raise DemoOnly(demo.root, hint=f"To use it: {command_of(demo)} {arguments}")


def is_demo(home: Home) -> bool:
    """Return whether a home contains only demo data."""
    if home.root.name != DEMO_FOLDER or not home.database.exists():
        return False
    try:
        with Store.of(home) as store:
            names = {source.path.name for source in store.sources.all()}
    except PalaverError:
        return False  # The caller opens the database as well and reports the problem.
    return bool(names) and names <= {path.name for path in DEMO.rglob("*.jsonl")}
