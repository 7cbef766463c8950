"""Signs that an agent's format changed so that a part of its transcripts is not read.

1. Records of an unknown type, by agent and type.
2. A version whose lines are skipped far more often than those of earlier versions.
3. Newest transcripts of an agent without any conversation, while older ones have some.
4. A transcript that grew after its last prompt, but only by messages without text.
5. Unknown columns of a database, and tables that are named like newer generations of tables that are read.
6. A folder or database that is named like a newer generation of one that is read.

A shape has the names and types of fields, without their values, because signs are shown in bug reports. Versions and
names that look like data are replaced by `…`.
"""

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias, cast

from ...archiver.copies.raw_copy import RawArchive
from ...archiver.formats import ContainerFormat, TranscriptFormat
from ...archiver.formats.container_formats import ContainedFormat
from ...archiver.formats.record_reader import FolderFormat
from ...archiver.formats.registry import all_formats, by_agent
from ...archiver.formats.transcript_format import SkipReason
from ...archiver.ingest.transcripts import roots
from ...archiver.lines import HEAD_BYTES, PARSED, REPEATED, records, split
from ...archiver.store import Store
from ...archiver.store.source_table import DELETED
from ...core.agent_names import AGENTS
from ...core.conversation import Skipped
from ...core.errors import SourceUnreadable
from ...core.reports import FormatDrift

_UNKNOWN: Final = "unknown-type"
_SHAPES: Final = 5
"""Maximum number of shapes that are read from raw copies."""
_READ_MAX: Final = 8 << 20
"""Maximum bytes of a raw copy that is read for a shape."""
_LINES: Final = 200
"""Minimum number of lines of a version whose share of skipped lines is compared."""
_JUMP: Final = 0.25
"""Difference of the shares of skipped lines from which on a version counts as changed."""
_NEWEST, _NEWEST_LINES = 5, 10
"""Number of an agent's newest transcripts that are compared with the older ones, and minimum number of their lines."""
_GROWN, _UNREAD = 50, 0.9
"""Minimum number of lines since the last prompt of a transcript, and share of them without text."""
_DATABASES: Final = {".db", ".sqlite", ".sqlite3", ".vscdb"}
_SETTINGS: Final = {"Library", "AppData"}
"""Folders in the user's home folder, besides hidden ones, that contain data of programs."""
_DEPTH, _FIELDS = 4, 40
"""Maximum depth and number of fields of a shape."""
_FIELD: Final = re.compile(r"[A-Za-z_$][A-Za-z_$-]{0,39}[0-9]{0,2}")
"""Pattern of a name that a program gives to a field. Other names, such as names of files and IDs, are data."""
_TYPE: Final = re.compile(r"[A-Za-z_$][\w.$/-]{0,59}")
"""Pattern of a name that a program gives to a type of records."""
_VERSION: Final = re.compile(r"v?\d[\w.+-]{0,30}")
"""Pattern of a version of a program."""
_TYPES: Final[dict[type, str]] = {str: "text", int: "number", float: "number", bool: "yes or no"}
_Row: TypeAlias = tuple[str, str, str, int]
"""Agent, version, outcome and number of lines."""
_GENERATION: Final = re.compile(r"[-_.]?v?\d{1,3}")


def format_drift(store: Store, raw: RawArchive) -> list[FormatDrift]:
    """Return the signs that formats changed.

    The agents' folders and the names of tables and columns are listed, but no content of an agent's file is read.
    """
    counts = store.sources.coverage_by_version()
    agents = {agent for agent, *_ in counts}
    formats = [by_agent(agent) for agent in AGENTS if agent in agents]
    recorded = (*_unknown_types(store, raw, counts), *_jumps(counts))
    unread = (*_without_conversation(store), *_unread_growth(store))
    return [*recorded, *unread, *_databases(formats), *generations(formats)]


def shown_version(version: str) -> str:
    """Return a version as transcripts name it, or a placeholder for a text that is no version."""
    return version if not version or _VERSION.fullmatch(version) else "…"


def shown_file(path: Path | str) -> str:
    """Return the name of a file, or its suffix after a placeholder if the name can be data of the user."""
    name = Path(path)
    return f"{_safe_name(name.stem)}{name.suffix}"


def version_order(version: str) -> tuple[list[int], str]:
    """Return the key by which versions are sorted: their numbers, then their text."""
    return [int(number) for number in re.findall(r"\d+", version)], version


def _unknown_types(store: Store, raw: RawArchive, counts: Sequence[_Row]) -> Iterator[FormatDrift]:
    """Yield the unknown types of each agent with the lines of all versions, the type with most lines first."""
    by_type: dict[tuple[str, str], dict[str, int]] = {}
    for agent, version, outcome, lines in counts:
        if outcome.startswith(_UNKNOWN):
            by_type.setdefault((agent, outcome), {})[version] = lines
    ranked = sorted(by_type.items(), key=lambda item: -sum(item[1].values()))
    for rank, ((agent, outcome), by_version) in enumerate(ranked):
        version = max(by_version, key=version_order)
        name = store.sources.with_outcome(agent, version, outcome) if rank < _SHAPES else ""
        shape = _shape_in(raw, name, agent, outcome) if name else ""
        kind = outcome.partition(":")[2]
        kind = kind if _TYPE.fullmatch(kind) else "…"
        lines = sum(by_version.values())
        yield FormatDrift(agent, shown_version(version), f"records of the unknown type {kind}", lines, kind, shape)


def _shape_in(raw: RawArchive, name: str, agent: str, outcome: str) -> str:
    """Return the shape of the first record of a raw copy with an outcome, or an empty text."""
    try:
        with raw.open(name) as file:
            data = file.read(_READ_MAX)
    except OSError:
        return ""
    known, lines = by_agent(agent), list(split(io.BytesIO(data)))
    reader = known.reader(known.identify(raw.root / name, data[:HEAD_BYTES]))
    skipped = (event for event in reader.read(lines) if isinstance(event, Skipped) and event.reason == outcome)
    number = next((event.line for event in skipped), 0)
    found = [decoded for line in lines if line.number == number if isinstance(decoded := records(line), list)]
    return shape_of(found[0][0]) if found else ""


def shape_of(value: object, depth: int = _DEPTH) -> str:
    """Return the fields of a JSON value with their types, without their values: `{type: text, data: {id: number}}`."""
    if isinstance(value, dict):
        fields = list(cast("dict[str, object]", value).items())[:_FIELDS]
        inner = [f"{_safe_name(name)}: {shape_of(each, depth - 1)}" for name, each in fields] if depth else ["…"]
        return f"{{{', '.join(dict.fromkeys(inner))}}}"
    if isinstance(value, list):
        elements = cast("list[object]", value)[:_FIELDS]
        return f"[{' | '.join(dict.fromkeys(shape_of(each, depth - 1) for each in elements)) if depth else '…'}]"
    return _TYPES.get(type(value), "nothing")


def _safe_name(name: str) -> str:
    """Return the name of a field, or a placeholder if it can be data of the user."""
    return name if _FIELD.fullmatch(name) else "…"


def _jumps(counts: Sequence[_Row]) -> Iterator[FormatDrift]:
    """Yield the newest version of each agent if its lines are skipped far more often than those of older versions."""
    for agent, rows in groupby(counts, key=lambda row: row[0]):
        lines, skipped = Counter[str](), Counter[str]()
        for _, version, outcome, count in rows:
            lines[version] += count
            skipped[version] += count if outcome not in {PARSED, REPEATED, DELETED} else 0
        *older, newest = [version for version in lines if lines[version] >= _LINES] or [""]
        if older:
            before = sum(skipped[version] for version in older) / sum(lines[version] for version in older)
            share = skipped[newest] / lines[newest]
            if share >= before + _JUMP:
                problem = f"{share:.0%} of the lines are skipped, after {before:.0%} in older versions"
                yield FormatDrift(agent, shown_version(newest), problem, skipped[newest])


def _without_conversation(store: Store) -> Iterator[FormatDrift]:
    for agent, lines in store.sources.newest_without_exchanges(_NEWEST_LINES, _NEWEST):
        problem = f"the {_NEWEST} newest transcripts contain no conversation that can be read"
        yield FormatDrift(agent, "", problem, lines)


def _unread_growth(store: Store) -> Iterator[FormatDrift]:
    for agent, lines in store.sources.grown_by(SkipReason.EMPTY, _GROWN, _UNREAD):
        yield FormatDrift(agent, "", "a transcript grew, but nothing after its last prompt can be read", lines)


def _databases(formats: Sequence[TranscriptFormat]) -> Iterator[FormatDrift]:
    for known in formats:
        if isinstance(known, ContainedFormat):
            with suppress(OSError, SourceUnreadable):
                for path in known.containers():
                    yield from (
                        FormatDrift(known.agent, "", f"{path.name}: {sign}") for sign in known.unknown_parts(path)
                    )


def generations(archived: Sequence[TranscriptFormat] = ()) -> Iterator[FormatDrift]:
    """Yield the folders that are beside those of an agent, and differ from them by a number only.

    A folder of the agent need not exist. Of the `archived` formats, databases are compared as well.
    """
    for known in all_formats():
        places = {*roots(known), *(known.possible_roots() if isinstance(known, FolderFormat) else ())}
        if known in archived and isinstance(known, ContainerFormat):
            with suppress(PermissionError):
                places.update(path for path in known.containers() if path.suffix in _DATABASES)
        for place in sorted(places):
            for path in _siblings(place):
                beside = path not in places and _GENERATION.fullmatch(path.stem.removeprefix(place.stem))
                if beside and path.stem.startswith(place.stem) and path.suffix == place.suffix:
                    problem = f"{_shown(path)} may be a newer form of {place.name}, which is read"
                    yield FormatDrift(known.agent, "", problem)


def _shown(path: Path) -> str:
    """Return a path with `~` in place of the user's home folder. Of a path in a project, only the end is shown."""
    home = Path.home()
    inside = path.relative_to(home) if path.is_relative_to(home) else Path()
    is_settings = inside.parts[:1] and (inside.parts[0].startswith(".") or inside.parts[0] in _SETTINGS)
    return f"~/{inside}" if is_settings else f"…/{path.parent.name}/{path.name}"


def _siblings(path: Path) -> list[Path]:
    try:
        return sorted(path.parent.iterdir())
    except OSError:
        return []
