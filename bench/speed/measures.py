"""Measures of Palaver, each with a baseline from the same run.

A baseline does the least work that is needed for the same task.
"""

import shutil
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from statistics import median, quantiles

import orjson
import tantivy
from msgspec import Struct
from msgspec.structs import replace

from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.query import Filters, Query
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.search.index.generation import Generations
from palaver.search.model.embedder import load

from .. import shared
from ..phases import phases
from .process import PALAVER, Place, compile_modules, paired, run, server, until

_WARM, _INGESTS, _CLIENT_RUNS = 200, 7, 40
_LONG_AGO = 1_000_000_000_000
"""Time in milliseconds that is before all sessions."""
_BASELINE = """import orjson, sys
for name in sys.argv[1:]:
    for line in open(name, "rb"):
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            pass
"""
_PYTHON = (sys.executable, "-c")
_BARE_SERVER = (sys.executable, str(Path(__file__).with_name("bare_server.py")))


class Measure(Struct, frozen=True):
    """Row of the table.

    Attributes:
        ours: Value of Palaver, in `unit`.
        baseline: Value of the baseline, in `unit`, or None without a baseline.
        task: Description of the baseline.
        target: Maximum ratio to the baseline (`5 x`), or maximum time (`15 ms`).
    """

    name: str
    ours: float
    baseline: float | None = None
    task: str = ""
    unit: str = "s"
    target: str = ""


def measures() -> Iterator[Measure]:
    """Yield all measures in the order of their dependencies. Raises `SetMissing`."""
    archive, queries = shared.transcripts(), _queries()
    compile_modules()
    with tempfile.TemporaryDirectory() as folder:
        place = Place(Path(folder) / "home" / "palaver", Path(folder) / "user" / ".claude")
        place.home.parent.mkdir()
        files = shared.unpack(archive, place.history.parent)
        yield from _start(place)
        yield from ingest(place, files)
        yield from _cold_search(place, queries[0])
        yield from _server(place)
        yield from warm_search(place, queries[:_WARM])
        yield from search_ratios(place, queries[:_WARM])
        yield from search_clients(place, queries[:_CLIENT_RUNS])
        yield from search_phases(place, queries[:_WARM])


def _queries() -> list[str]:
    lines = shared.find("coding-sessions", "questions.jsonl").read_bytes().splitlines()
    return [orjson.loads(line)["query"] for line in lines]


def _start(place: Place) -> Iterator[Measure]:
    ours, baseline = paired(_runs(place, (*PALAVER, "--help")), _runs(place, (*_PYTHON, "pass")))
    yield Measure("palaver --help", ours, baseline, "python -c pass")


def ingest(place: Place, files: Sequence[Path]) -> Iterator[Measure]:
    """Measure `palaver up` with these files: first runs, and one run without changes."""
    size = sum(file.stat().st_size for file in files) / 1e6
    task = f"new process: read {size:.0f} MB and parse each line with orjson"
    searchable, baseline = paired(
        lambda: _searchable(place), _runs(place, (*_PYTHON, _BASELINE, *map(str, files))), _INGESTS
    )
    yield Measure("palaver up, until text is searchable", searchable, baseline, task, target="5 x")
    before = _parse(files)
    warm = _ingest_in_process(place)
    yield Measure(
        "ingest in a warm process, until text is searchable",
        warm,
        min(before, _parse(files)),
        "same process: parse each line with orjson",
    )
    first = run((*PALAVER, "up"), place)
    yield Measure("palaver up, complete", first.seconds, baseline, task)
    yield Measure("palaver up, peak memory", first.peak, unit="MB")
    again = run((*PALAVER, "up"), place)
    yield Measure("palaver up, no changes", again.seconds, baseline, task)


def _searchable(place: Place) -> float:
    """Return the seconds until `palaver up` in a new home has made the text of the history searchable."""
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = Place(Path(folder) / "home" / "palaver", place.history)
        elsewhere.home.parent.mkdir()
        return until((*PALAVER, "up"), elsewhere, lambda: bool(Generations(Home(elsewhere.home).index).name()))


def _ingest_in_process(place: Place) -> float:
    """Return the seconds until this process has made the text of the history searchable in a new home."""
    with tempfile.TemporaryDirectory() as folder, Pipeline(Home(Path(folder) / "home")) as pipeline:
        return pipeline.run(in_paths([place.history])).searchable


def _parse(files: Sequence[Path]) -> float:
    lines = [line for file in files for line in file.read_bytes().splitlines()]
    started = time.perf_counter()
    for line in lines:
        try:
            orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
    return time.perf_counter() - started


def _cold_search(place: Place, query: str) -> Iterator[Measure]:
    command = (*PALAVER, "search", query, "--json")
    baseline = (*_PYTHON, "import tantivy, onnxruntime")
    yield Measure(
        "palaver search, cold", *paired(_runs(place, command), _runs(place, baseline)), baseline[-1], target="3 x"
    )
    yield Measure("palaver search, peak memory", run(command, place).peak, unit="MB")


def _server(place: Place) -> Iterator[Measure]:
    def listed() -> float:
        started = time.perf_counter()
        with server(place) as client:
            client.initialize()
            client.request("tools/list", {})
            return time.perf_counter() - started

    baseline = (*_PYTHON, "import mcp.server")
    yield Measure("palaver mcp, start to tools/list", *paired(listed, _runs(place, baseline)), baseline[-1])


def warm_search(place: Place, queries: Sequence[str]) -> Iterator[Measure]:
    """Time at least two queries to an open archive, in this process and over MCP."""
    with ArchiveSearch(Home(place.home)) as layers:
        inside = _each(lambda query: layers.find(Query.parse(query)), queries)
    with server(place) as client:
        client.initialize()
        over = _each(lambda query: client.request("tools/call", _call(query)), queries)
    baseline = _each(_baseline_search(place), queries)
    task = "Tantivy query on the same index"
    for name, asked in (("search, warm", inside), ("search over MCP, warm", over)):
        yield Measure(f"{name}, median", median(asked), median(baseline), task, target="15 ms")
        yield Measure(f"{name}, 99th percentile", _p99(asked), _p99(baseline), task)


def search_ratios(place: Place, queries: Sequence[str]) -> Iterator[Measure]:
    """Measure the CPU time of searches over MCP, in turn with an empty program and an MCP server that does nothing.

    Without the CPU times of Linux, nothing is measured.
    """
    if sys.platform != "linux":
        return
    half, taken = len(queries) // 2, defaultdict[str, list[float]](list)
    with server(place) as ours, server(place, _BARE_SERVER) as bare:
        for client in (ours, bare):
            client.initialize()
            client.request("tools/call", _call(queries[-1]))
        for number, query in enumerate(queries):
            taken["pass"].append(run((*_PYTHON, "pass"), place).cpu)
            taken["bare"].append(bare.cpu_seconds("tools/call", _call(query)))
            taken["search"].append(ours.cpu_seconds("tools/call", _call(query)))
            # Another query, because the embedding of the last one is cached.
            taken["session"].append(ours.cpu_seconds("tools/call", _call(queries[number - half], by="session")))
    medians = {name: median(seconds) for name, seconds in taken.items()}
    name, task = "search over MCP, CPU time", "python -c pass"
    yield Measure(f"{name}, median", medians["search"], medians["pass"], task, target="1.6 x")
    yield Measure(f"{name}, 99th percentile", _p99(taken["search"]), medians["pass"], f"{task}, median", target="4 x")
    yield Measure(f"{name}, median", medians["search"], medians["bare"], "MCP server that returns a constant")
    yield Measure(f"{name}, by session", medians["session"], medians["search"], "search over MCP", target="1.2 x")


def search_clients(place: Place, queries: Sequence[str]) -> Iterator[Measure]:
    """Time searches by commands that a running process answers, in turn with an empty program.

    If agentsview is installed, its command takes its turn, over the same transcripts.
    """
    other, taken = shutil.which("agentsview"), defaultdict[str, list[float]](list)
    with server(place) as client, _agentsview(place, other) if other else nullcontext():
        client.initialize()
        for query in queries:
            taken["pass"].append(run((*_PYTHON, "pass"), place).seconds)
            taken["search"].append(run((*PALAVER, "search", "--", query), place).seconds)
            if other:
                taken["agentsview"].append(run((other, "session", "search", "--fts", "--", query), place).seconds)
    name, ours = "palaver search, answered by a running process", median(taken["search"])
    yield Measure(name, ours, median(taken["pass"]), "python -c pass", target="150 ms")
    if other:
        yield Measure(name, ours, median(taken["agentsview"]), "agentsview session search --fts, same transcripts")


@contextmanager
def _agentsview(place: Place, program: str) -> Generator[None]:
    """Import the transcripts into agentsview and keep its server running."""
    run((program, "sync"), place)
    try:
        yield
    finally:
        run((program, "daemon", "stop"), place)


def search_phases(place: Place, queries: Sequence[str]) -> Iterator[Measure]:
    """Time the phases of searches in an open archive, without filters and with a different date range per query."""
    home, model = Home(place.home), load()
    plain = [Query.parse(query) for query in queries]
    dated = [replace(one, filters=Filters(after=_LONG_AGO + number)) for number, one in enumerate(plain)]
    with Store.open(home.database) as store:
        for asked, name in ((plain, ""), (dated, ", date filter")):
            for phase, taken in phases(store, home, model, asked).items():
                yield Measure(f"phase: {phase}{name}", median(each.wall for each in taken))


def _call(query: str, **arguments: str) -> dict[str, object]:
    return {"name": "search", "arguments": {"query": query, **arguments}}


def _each(search: Callable[[str], object], queries: Sequence[str]) -> list[float]:
    """Return the seconds of each query, after a warm-up."""
    for query in queries[:5]:
        search(query)
    return [_timed(search, query) for query in queries]


def _baseline_search(place: Place) -> Callable[[str], object]:
    """Return a function that finds ten entries with any word of a query in the published index."""
    published = Generations(Home(place.home).index).current()
    assert published is not None
    index = tantivy.Index.open(str(published.text))
    schema, searcher = index.schema, index.searcher()
    builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple()).filter(tantivy.Filter.lowercase())
    analyzer = builder.filter(tantivy.Filter.stemmer("english")).build()

    def search(query: str) -> object:
        terms = [tantivy.Query.term_query(schema, "body", word, "freq") for word in analyzer.analyze(query)]
        return searcher.search(tantivy.Query.boolean_query([(tantivy.Occur.Should, term) for term in terms]), 10)

    return search


def _runs(place: Place, command: Sequence[str]) -> Callable[[], float]:
    return lambda: run(command, place).seconds


def _timed(search: Callable[[str], object], query: str) -> float:
    started = time.perf_counter()
    search(query)
    return time.perf_counter() - started


def _p99(seconds: Sequence[float]) -> float:
    return quantiles(seconds, n=100)[-1]
