"""Counts of real transcripts equal those of ccusage 20.0.24, or a count that shares no code with Palaver.

The figures of ccusage were measured with `ccusage claude daily --offline --json --breakdown -z UTC`.
"""

import json
import tarfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC
from pathlib import Path
from typing import Any, TypeAlias, cast

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.config import Config
from palaver.core.conversation import use_time_zone
from palaver.core.home import Home
from palaver.core.usage_report import UsageFilter, UsageGroup
from palaver.observe.archive import Archive

from ..shared import SAMPLES, SHARED

Counts: TypeAlias = tuple[int, int, int, int]
"""Tokens of input, output, cache reads and cache writes."""
SESSIONS = SHARED / "bench" / "coding-sessions" / "transcripts.tar.gz"
CCUSAGE_SESSIONS: dict[str, Counts] = {
    "claude-opus-4-6": (2_621, 165_902, 163_701_879, 5_538_117),
    "claude-sonnet-4-6": (2_622, 41_405, 31_992_258, 1_411_594),
    "claude-haiku-4-5-20251001": (6_437, 6_247, 7_901_235, 997_049),
}
CCUSAGE_DAYS: dict[str, Counts] = {
    "2026-02-12": (344, 13_763, 17_058_927, 719_449),
    "2026-02-13": (1_312, 25_382, 18_673_704, 782_589),
}
CCUSAGE_SAMPLES: dict[str, Counts] = {
    "claude-sonnet-4": (883, 328, 0, 0),
    "claude-sonnet-4-20250514": (1_600, 79_511, 71_000_899, 2_593_775),
    "claude-opus-4-1-20250805": (14, 3, 76_406, 483),
    "claude-3-5-haiku-20241022": (4, 1, 16_999, 0),
    "claude-opus-5": (1_026, 224_337, 140_606_021, 2_790_398),
    "claude-opus-4-5-20251101": (1_229, 9_354, 12_867_265, 692_991),
    "claude-sonnet-4-5-20250929": (396, 96, 1_672_306, 204_494),
    "claude-opus-4-6": (2_771, 51_688, 26_919_477, 781_865),
    "claude-sonnet-4-6": (38, 4, 57_807, 56_040),
    "claude-haiku-4-5-20251001": (3, 1, 0, 27_961),
    "claude-opus-4-7": (60, 39_169, 2_042_224, 251_315),
    "claude-opus-4-8": (7_120, 17_626, 1_605_934, 49_457),
    "claude-fable-5": (24_886, 352_993, 53_164_208, 1_153_729),
    "claude-sonnet-5": (37_429, 58_580, 8_547_114, 396_483),
}
SPACED: dict[str, Counts] = {"claude-3-sonnet-20240229": (558, 830, 0, 0)}
"""Replies in records with spaces after colons, as no version of Claude Code writes them. ccusage skips such records."""

pytestmark = pytest.mark.timeout(120)
has_samples = pytest.mark.skipif(not SAMPLES.is_dir(), reason="no samples here")


def archived(folder: Path, root: Path) -> Home:
    """Archive the transcripts of a folder, without extracting or indexing anything."""
    home = Home(root / "palaver")
    home.make()
    with Store.create(home.database) as store:
        Ingest(store, RawArchive(home.archive)).run(in_paths([folder]))
    return home


def counted(home: Home, by: UsageGroup, agent: str) -> dict[str, Counts]:
    """Return the tokens by group."""
    use_time_zone(UTC)
    with Archive(home, Config()) as archive:
        rows = archive.usage.report(by, UsageFilter(agents=(agent,))).rows
    return {
        row.name: (row.counts.input, row.counts.output, row.counts.cache_read, row.counts.cache_write) for row in rows
    }


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Home:
    return archived(SAMPLES, tmp_path_factory.mktemp("samples"))


@pytest.mark.skipif(not SESSIONS.is_file(), reason="no real sessions here")
def test_98_sessions_equal_ccusage(tmp_path: Path) -> None:
    with tarfile.open(SESSIONS) as file:
        file.extractall(tmp_path, filter="data")
    home = archived(tmp_path / ".claude", tmp_path)
    by_day = counted(home, UsageGroup.DAY, "claude-code")

    assert counted(home, UsageGroup.MODEL, "claude-code") == CCUSAGE_SESSIONS
    assert {day: by_day[day] for day in CCUSAGE_DAYS} == CCUSAGE_DAYS


@has_samples
def test_claude_samples_equal_ccusage(samples: Home) -> None:
    assert counted(samples, UsageGroup.MODEL, "claude-code") == CCUSAGE_SAMPLES | SPACED


def records(paths: Iterable[Path]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the objects in JSON lines, and those in the list of messages of a JSON document."""
    for path in paths:
        text = path.read_text("utf-8", "replace")
        try:
            document: Any = json.loads(text)
        except ValueError:
            document = None
        if isinstance(document, dict):
            content = cast("dict[str, Any]", document)
            yield from ((path, record) for record in content.get("messages", [content]))
            continue
        for line in text.splitlines():
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict):
                yield path, record


def codex() -> Iterator[tuple[object, str, Counts]]:
    """Yield each change of the running total, with the model of the turn."""
    model = dict[Path, str]()
    for path, record in records(SAMPLES.rglob("*.jsonl")):
        payload: Any = record.get("payload")
        if not isinstance(payload, dict):
            continue
        payload = cast("dict[str, Any]", payload)
        if record.get("type") == "turn_context":
            model[path] = payload.get("model") or ""
        info: dict[str, Any] = payload.get("info") or {}
        last: dict[str, int] = info.get("last_token_usage") or {}
        total: dict[str, int] = info.get("total_token_usage") or {}
        if payload.get("type") == "token_count" and last:
            read = last.get("cached_input_tokens", 0)
            counts = last.get("input_tokens", 0) - read, last.get("output_tokens", 0), read, 0
            yield (path, total.get("total_tokens")), model.get(path, ""), counts


def copilot() -> Iterator[tuple[object, str, Counts]]:
    for path, record in records(SAMPLES.rglob("*.jsonl")):
        if record.get("type") == "session.shutdown":
            for model, metrics in record["data"].get("modelMetrics", {}).items():
                used = metrics.get("usage", {})
                read, written = used.get("cacheReadTokens", 0), used.get("cacheWriteTokens", 0)
                counts = used.get("inputTokens", 0) - read - written, used.get("outputTokens", 0), read, written
                yield (path, record["id"], model), model, counts


def gemini() -> Iterator[tuple[object, str, Counts]]:
    for path, record in records(path for path in SAMPLES.rglob("*.json*") if "gemini" in str(path)):
        if used := record.get("tokens"):
            counts = used["input"] - used["cached"], used["output"] + used["thoughts"], used["cached"], 0
            yield record["id"] if len(record["id"]) > 16 else (path, record["id"]), record.get("model", ""), counts


def opencode() -> Iterator[tuple[object, str, Counts]]:
    for _, record in records(path for path in SAMPLES.rglob("*.json") if "opencode" in path.parts):
        if record.get("role") == "assistant" and (used := record.get("tokens")):
            cache = used.get("cache", {})
            output = used.get("output", 0) + used.get("reasoning", 0)
            yield record["id"], record["modelID"], (used["input"], output, cache.get("read", 0), cache.get("write", 0))


@has_samples
@pytest.mark.parametrize("replies", [codex, copilot, gemini, opencode], ids=lambda replies: replies.__name__)
def test_other_agents_equal_an_independent_count(
    samples: Home, replies: Callable[[], Iterator[tuple[object, str, Counts]]]
) -> None:
    largest, totals = dict[object, tuple[str, Counts]](), dict[str, Counter[int]]()
    for name, model, counts in replies():
        if any(counts) and sum(counts) >= sum(largest.get(name, ("", (0, 0, 0, 0)))[1]):
            largest[name] = model, counts
    for model, counts in largest.values():
        totals.setdefault(model, Counter()).update(dict(enumerate(counts)))

    assert totals
    assert counted(samples, UsageGroup.MODEL, replies.__name__) == {
        model: tuple(total[place] for place in range(4)) for model, total in totals.items()
    }
