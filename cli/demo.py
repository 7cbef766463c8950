"""Demo data: a small sample archive in a separate home, never mixed with the user's archive."""

import os

import click

from ..core.config import Config
from ..core.errors import DemoOnly, PalaverError
from ..core.home import DEMO, DEMO_FOLDER, Home
from ..observe.archive import Archive
from .program import command_of


def use_demo(*, load: bool) -> None:
    """Select the demo home for this process. With `load`, fill a new one with the sample transcripts.

    Raises:
        StoreReadOnly: The sample is not loaded yet, and PALAVER_READ_ONLY is set.
    """
    found = Home.find()
    home = found if is_demo(found) else Home(found.root / DEMO_FOLDER, found.read_only)
    os.environ["PALAVER_HOME"] = str(home.root)
    if load and home.is_new:
        from ..archiver.ingest.transcripts import in_paths

        with Archive(home, Config()).pipeline() as pipeline:
            pipeline.run(in_paths([DEMO]))


def is_demo_selected() -> bool:
    """Return whether the command was called with `--demo`."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.find_root().params.get("demo"))


def refuse_demo(home: Home) -> None:
    """Raise `PalaverError` for the demo home, in which the user's transcripts must not be archived."""
    if is_demo(home):
        hint = "To archive your own transcripts, leave out --demo or run `unset PALAVER_HOME`, then run `palaver up`."
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
        with Archive(home).store as store:
            names = {source.path.name for source in store.sources.all()}
    except PalaverError:
        return False  # The caller opens the database as well and reports the problem.
    return bool(names) and names <= {path.name for path in DEMO.rglob("*.jsonl")}
