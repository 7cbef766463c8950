"""The change log contains every item whose index entries changed."""

from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from palaver.archiver.store import Entity
from palaver.core.runtime import silent
from palaver.observe.pipeline import observe_pending
from palaver.search.index import indexed_texts

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from ..archiver.history import ORIGINAL, History

places = st.fixed_dictionaries(
    {}, optional={"cwd": st.sampled_from(["/a", "/b"]), "gitBranch": st.sampled_from(["main", "fix"])}
)
FIX, MAIN = {"cwd": "/b", "gitBranch": "fix"}, {"cwd": "/a", "gitBranch": "main"}
Lines = list[tuple[int, dict[str, str]]]
lines = st.lists(st.tuples(st.integers(0, 3), places), max_size=4)
steps = st.lists(st.tuples(st.integers(0, 400), lines, st.booleans()), min_size=3, max_size=7)
"""Steps: bytes to cut off the end of the transcript, lines to append, and whether to extract observations."""


def _records(step: int, drawn: Lines) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number, (kind, place) in enumerate(drawn):
        fields = {"uuid": f"u{step}-{number}", "sessionId": ORIGINAL, **place}
        if kind == 0:
            made.append({"type": "system", "subtype": "turn_duration", **fields})
        elif kind == 1:
            made.append(assistant(text("done"), id=f"m{step}-{number}", **fields))
        else:
            made.append(user("Decision: use two", **fields))
    return made


def _entries(history: History) -> dict[int, Counter[int]]:
    """Return the digests of each item's index entries."""
    found: dict[int, Counter[int]] = {}
    for entry in indexed_texts.entries(history.store, history.store.items.all_keys()):
        found.setdefault(entry.key, Counter())[entry.digest] += 1
    return found


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(steps)
@example([(0, [(2, FIX), (2, {})], False), (100, [], False), (0, [(1, MAIN), (1, MAIN)], False), (0, [(2, {})], False)])
def test_every_change_of_an_index_entry_is_logged(story: list[tuple[int, Lines, bool]]) -> None:
    """After any change of a transcript, items that are not in the change log have the same index entries as before."""
    with TemporaryDirectory() as folder, History(Path(folder)) as history:
        known: dict[int, Counter[int]] = {}
        data = b""
        for step, (cut, drawn, observed) in enumerate(story):
            seq = history.store.changes.last()
            data = data[: max(0, len(data) - cut)] + jsonl(_records(step, drawn))
            history.write(data, at=step)
            history.ingest()
            if observed:
                observe_pending(history.store, silent)
            now, logged = _entries(history), set(history.store.changes.since(seq, [Entity.ITEM]))

            assert {key for key in known.keys() | now.keys() if known.get(key) != now.get(key)} <= logged
            known = now
