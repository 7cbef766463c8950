"""Whether a home is that of the made-up history, which no real one may be mixed with."""

from __future__ import annotations

from typing import Final

from palaver.core.errors import OnlyMadeUp, PalaverError
from palaver.core.home import Home

FOLDER: Final = "demo"
"""The folder of that home, below the person's own."""


def refuse_made_up(home: Home) -> None:
    """Raises `PalaverError` where a real history would be taken into the home of the made-up one."""
    if holds_made_up(home):
        hint = "To archive your own: `unset PALAVER_HOME`, then `palaver up`."
        raise PalaverError(f"the made-up history is in {home.root}, and yours would be mixed with it", hint=hint)


def refuse_only_made_up(home: Home, words: str) -> None:
    """Raises `OnlyMadeUp` where nothing but the made-up history is there; `words` are what to ask it with."""
    from .program import command_of

    demo = Home(home.root / FOLDER)
    if demo.has_database and home.is_new:
        raise OnlyMadeUp(demo.root, hint=f"Look there with: {command_of(demo)} {words}")


def holds_made_up(home: Home) -> bool:
    """Whether a home holds the made-up history and nothing else."""
    if home.root.name != FOLDER or not home.database.exists():
        return False
    from palaver.archiver.ingest.transcripts import DEMO
    from palaver.archiver.store import Store

    try:
        with Store.open(home.database) as store:
            names = {source.path.name for source in store.sources.all()}
    except PalaverError:
        return False  # Whoever asked opens it too, and says what is wrong.
    return bool(names) and names <= {path.name for path in DEMO.rglob("*.jsonl")}
