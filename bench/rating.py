"""Draw sessions and write sheets for readers who rate them blind: `python -m bench.rating draw|sheets`.

The list of sessions was drawn once, from the test split, before the rules changed. The sheets show what the program
makes of these sessions, without any figure that reveals how it was made.
"""

import argparse
import random
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import orjson

from palaver.archiver.store import StoredExchange, StoredObservation

from . import shared
from .observations import Archive, archived, split_of
from .shared import SetMissing, transcripts, unpack

SESSIONS = Path(__file__).with_name("rating_sessions.json")
"""IDs of the drawn sessions, by purpose: `read` as a whole, and `observed` for single observations."""
_SEED = 20261128
_READ, _OBSERVATIONS = 15, 60
_EXCHANGES = 3
"""Minimum number of exchanges of a session that is read as a whole."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Draw the sessions, or write one sheet a purpose into a folder."""
    parser = argparse.ArgumentParser(prog="python -m bench.rating", description=__doc__)
    parser.add_argument("action", choices=["draw", "sheets"])
    parser.add_argument("folder", nargs="?", type=Path, default=Path("rating"), help="folder of the sheets")
    chosen = parser.parse_args(arguments)
    try:
        archive = _archive()
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    if chosen.action == "draw":
        SESSIONS.write_bytes(orjson.dumps(_draw(archive), option=orjson.OPT_INDENT_2))
    else:
        chosen.folder.mkdir(parents=True, exist_ok=True)
        _write_sheets(archive, orjson.loads(SESSIONS.read_bytes()), chosen.folder)
    return 0


def _archive() -> Archive:
    with TemporaryDirectory(prefix="palaver-bench-") as folder:
        paths = [*unpack(transcripts(), Path(folder) / "history"), shared.samples()]
        return archived(paths, Path(folder) / "home")


def _draw(archive: Archive) -> dict[str, list[str]]:
    """Return sessions of the test split: long ones to read, and all others in random order for observations."""
    tested = sorted(session for session in archive.exchanges if split_of(session) == "test")
    order = random.Random(_SEED)
    long = [session for session in tested if len(archive.exchanges[session]) >= _EXCHANGES]
    read = sorted(order.sample(long, _READ))
    others = [session for session in tested if session not in read]
    return {"read": read, "observed": order.sample(others, len(others))}


def _write_sheets(archive: Archive, sessions: dict[str, list[str]], folder: Path) -> None:
    for session in sessions["read"]:
        shown = archive.observations.get(session, [])
        text = "\n\n".join([f"# Session {session}", *map(_shown, shown)])
        (folder / f"session-{session[:13]}.md").write_text(text, encoding="utf-8")
        (folder / f"transcript-{session[:13]}.md").write_text(
            "\n\n".join(map(_transcript, archive.exchanges[session])), encoding="utf-8"
        )
    drawn = [
        (observation, next(each for each in archive.exchanges[session] if each.key == observation.exchange))
        for session in sessions["observed"]
        for observation in archive.observations.get(session, [])
        if not observation.observation.is_summary
    ]
    picked = random.Random(_SEED).sample(drawn, min(_OBSERVATIONS, len(drawn)))
    sheet = [f"# {n}\n\n{_shown(one)}\n\n{_transcript(source)}" for n, (one, source) in enumerate(picked, 1)]
    (folder / "observations.md").write_text("\n\n---\n\n".join(sheet), encoding="utf-8")


def _shown(stored: StoredObservation) -> str:
    one = stored.observation
    facts = "\n".join(f"- {fact}" for fact in one.facts)
    return f"## {one.type}: {one.title}\n{one.subtitle}\n\n{one.narrative}\n\n{facts}"


def _transcript(stored: StoredExchange) -> str:
    turns = (f"[{turn.line} {turn.speaker} {turn.kind}] {turn.text[:1500]}" for turn in stored.exchange.turns)
    return "\n".join(["### Source", *turns])


if __name__ == "__main__":
    sys.exit(main())
