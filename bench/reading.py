"""Benchmark of reading: what the formats read from real transcripts, to compare two versions of Palaver.

Run an older version with `PYTHONPATH=OTHER/src python -m bench.reading --save FILE`, and compare with `--compare FILE`.
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import msgspec

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.conversation import Kind, SessionKind, Speaker
from palaver.core.home import Home

from .shared import SetMissing, samples, transcripts, unpack
from .table import table


class Counts(msgspec.Struct):
    """What was read from one session, or from all sessions of a set.

    Attributes:
        sessions: Sessions with exchanges, including sub-agents.
        subagents: Sub-agents with exchanges.
        exchanges: Prompts with everything up to the next prompt.
        typed: Prompts that a user typed.
        calls: Calls of tools, including commands of users.
        failed: Results of failed calls.
        edits: Files written, counted once per result.
        late: Results whose call is in another exchange.
        tokens_in: Input tokens.
        tokens_out: Output tokens.
    """

    sessions: int = 0
    subagents: int = 0
    exchanges: int = 0
    typed: int = 0
    calls: int = 0
    failed: int = 0
    edits: int = 0
    late: int = 0
    tokens_in: int = 0
    tokens_out: int = 0

    def add(self, other: "Counts") -> None:
        """Add the counts of another session."""
        for name in self.__struct_fields__:
            setattr(self, name, getattr(self, name) + getattr(other, name))


Sessions = dict[str, Counts]
_BATCH: Final = 200
"""Number of exchanges that are in memory at a time."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Read both sets, and print their counts. With `--compare`, also print each session with other counts."""
    parser = argparse.ArgumentParser(prog="python -m bench.reading", description=__doc__)
    parser.add_argument("--save", type=Path, metavar="FILE", help="write the counts of every session to FILE")
    parser.add_argument("--compare", type=Path, metavar="FILE", help="compare with the counts in FILE")
    chosen = parser.parse_args(arguments)
    try:
        found = read_sets()
    except SetMissing as missing:
        print(missing, file=sys.stderr)
        return 1
    if chosen.save:
        chosen.save.write_bytes(msgspec.json.format(msgspec.json.encode(found)))
    before: dict[str, Sessions] = {}
    if chosen.compare:
        before = msgspec.json.decode(chosen.compare.read_bytes(), type=dict[str, Sessions])
    print(totals(found, before))
    for name in found:
        print("\n".join(differences(name, before[name], found[name])) if name in before else "")
    return 0


def read_sets() -> dict[str, Sessions]:
    """Read the 98 sessions and the samples, each in a new home. Raises `SetMissing`."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        sets = {"98 sessions": unpack(transcripts(), folder / "history"), "samples": [samples()]}
        return {
            label: read(paths, Home(folder / f"home {number}")) for number, (label, paths) in enumerate(sets.items())
        }


def read(paths: Sequence[Path], home: Home) -> Sessions:
    """Archive transcripts in a new home, and return the counts of each session."""
    home.make()
    counts: Sessions = {}
    with Store.create(home.database) as store:
        Ingest(store, RawArchive(home.archive)).run(in_paths(paths))
        names = {
            number: _name(each.agent, each.native_id, each.parent_id if each.kind is SessionKind.SUBAGENT else "")
            for number, each in store.sessions.all().items()
        }
        keys = store.items.all_keys()
        for start in range(0, len(keys), _BATCH):
            for stored in store.exchanges.load(keys[start : start + _BATCH]).values():
                name = names[stored.session]
                one = counts.setdefault(name, Counts(sessions=1, subagents=int(" in " in name)))
                turns = stored.exchange.turns
                calls = {turn.call for turn in turns if turn.kind is Kind.CALL}
                results = [turn for turn in turns if turn.kind is Kind.RESULT]
                one.add(
                    Counts(
                        exchanges=1,
                        typed=sum(turn.kind is Kind.PROMPT and turn.speaker is Speaker.HUMAN for turn in turns),
                        calls=sum(turn.kind is Kind.CALL for turn in turns),
                        failed=sum(turn.failed for turn in results),
                        edits=sum(len(turn.writes) for turn in results),
                        late=sum(bool(turn.call) and turn.call not in calls for turn in results),
                        tokens_in=stored.exchange.tokens_in,
                        tokens_out=stored.exchange.tokens_out,
                    )
                )
    return counts


def totals(found: Mapping[str, Sessions], before: Mapping[str, Sessions]) -> str:
    """Return a table with the sums of each set, and the sums before in parentheses if they differ."""
    names = Counts.__struct_fields__
    rows: list[list[str]] = []
    for label, sessions in found.items():
        now, old = _sum(sessions), _sum(before.get(label, sessions))
        pairs = [(getattr(now, name), getattr(old, name)) for name in names]
        rows.append([label, *(f"{new:,}" if new == was else f"{new:,} ({was:,})" for new, was in pairs)])
    return table(["set", *(name.replace("_", " ") for name in names)], rows)


def differences(label: str, before: Sessions, now: Sessions) -> list[str]:
    """Return a line for each session whose counts differ."""
    lines: list[str] = []
    for name in sorted(before.keys() | now.keys()):
        old, new = before.get(name, Counts()), now.get(name, Counts())
        fields = [field for field in Counts.__struct_fields__ if getattr(old, field) != getattr(new, field)]
        if fields:
            changes = (f"{field} {getattr(old, field):,} -> {getattr(new, field):,}" for field in fields)
            lines.append(f"{label}: {name}: {', '.join(changes)}")
    return lines


def _name(agent: str, native_id: str, parent: str) -> str:
    return f"{agent} {native_id}" + (f" in {parent}" if parent else "")


def _sum(sessions: Sessions) -> Counts:
    total = Counts()
    for one in sessions.values():
        total.add(one)
    return total


if __name__ == "__main__":
    sys.exit(main())
