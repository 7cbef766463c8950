"""Measure the memory core with 100,000 memories and a graph of 10,000: `python -m bench.memory`.

Texts follow a word frequency distribution, and vectors are random around clusters. During the measurement, the packaged
model embeds new memories and queries.
"""

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from statistics import median, quantiles

import numpy as np

from palaver.agents.fabric import FABRIC, FabricContext
from palaver.agents.toolset import ServerConfig
from palaver.archiver.store import Store
from palaver.archiver.store.change_log import TOKEN_BYTES, Embedding
from palaver.core.conversation import now
from palaver.core.home import Home
from palaver.core.memory import Edge, Memory, MemoryFilter, Relation
from palaver.observe.archive import Archive
from palaver.observe.memory import MemoryCore
from palaver.search.index.generation import Generations
from palaver.search.index.indexer import Indexer
from palaver.search.model.embedder import load
from palaver.templates.render import Renderer

from .stopwatch import machine_load
from .table import table, write_section

MEMORIES, NODES, RUNS = 100_000, 10_000, 60
_TOKENS = 36
"""Words per text. The model splits each synthetic word into about three tokens."""
_WORDS, _CLUSTERS, _AT_A_TIME = 20_000, 400, 2_000
_TYPES = ("preference", "decision", "pattern", "fact", "session", "code_pattern", "bug_fix")
_NAMESPACES = ("global", *(f"project:p{number}" for number in range(9)))
Row = tuple[str, float, float, float, float, str]
"""Name of a measure, its minimum, median and 95th percentile in seconds, its median CPU seconds, and its target."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. With `--write`, update RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.memory", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the table to bench/RESULTS.md")
    parser.add_argument("--memories", type=int, default=MEMORIES, help="number of stored memories")
    chosen = parser.parse_args(arguments)
    rows: list[list[str]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name, *seconds, target in measures(Home(Path(folder) / "home"), chosen.memories):
            rows.append([name, *(f"{each * 1000:.1f} ms" for each in seconds), target])
            print(" ".join(rows[-1]), file=sys.stderr)
    text = table(["measure", "minimum", "median", "95th percentile", "CPU time", "target"], rows)
    print(text)
    if chosen.write:
        conditions = f"`python -m bench.memory --write`, {chosen.memories:,} memories; {machine_load()}"
        write_section("Memory", f"{conditions}\n\n{text}")
    return 0


def measures(home: Home, count: int) -> Iterator[Row]:
    """Fill a home and yield all measures."""
    chance = random.Random(7)
    home.make()
    with Store.create(home.database) as store:
        started = time.perf_counter()
        _fill(store, count, chance)
        _add_edges(store, min(count, NODES), chance)
        print(f"filled in {time.perf_counter() - started:.0f} s", file=sys.stderr)
        started = time.perf_counter()
        Indexer(store, Generations(home.index), load()).publish()
        print(f"published in {time.perf_counter() - started:.0f} s", file=sys.stderr)
    with Archive(home).memories as core:
        yield from _measured(core, chance)
    yield from _contexts(home, chance)


def _measured(core: MemoryCore, chance: random.Random) -> Iterator[Row]:
    def store(_run: int) -> object:
        return core.remember(Memory(_text(chance), chance.choice(_TYPES), namespace="global"))

    def recall(_run: int) -> object:
        return core.recall(" ".join(_text(chance).split()[:6]), limit=5)

    def recall_in(run: int) -> object:
        wanted = MemoryFilter(namespaces=(_NAMESPACES[run % len(_NAMESPACES)],), types=("decision",))
        return core.recall(" ".join(_text(chance).split()[:6]), wanted, limit=5)

    first = core.page(limit=1, offset=0, descending=False)[0].id
    yield _row("recall", recall, "15 ms")
    yield _row("recall, one namespace and type", recall_in, "15 ms")
    yield _row("store", store, "20 ms")
    yield _row("recall, after stores", recall, "15 ms")
    yield _row("list 100", lambda _: core.page(), "10 ms")
    yield _row("list 100 of a namespace, by confidence", lambda run: core.page(_within(run)), "10 ms")
    yield _row("count", lambda _: core.count(), "10 ms")
    yield _row("count of a namespace", lambda run: core.count(_within(run)), "10 ms")
    yield _row("outcome", lambda run: core.feedback.outcome(first, success=run % 2 == 0), "20 ms")
    yield _row(f"graph of {NODES:,}, depth 3", lambda _: core.graph.inspect(first, depth=3), "50 ms")
    print(f"the graph of depth 3 has {len(core.graph.inspect(first, depth=3).nodes):,} memories", file=sys.stderr)


def _contexts(home: Home, chance: random.Random) -> Iterator[Row]:
    """Yield the measures of the `fabric` tools that agents call at the start of a session."""
    project = home.root.parent / "p1"
    project.mkdir()
    fabric = FabricContext(ServerConfig(Archive(home), Renderer(), (project,), project))
    fabric.core.projects.claim(project)
    tools = {tool.name: tool for tool in FABRIC.tools}
    session = {"sessionId": "bench"}

    def current(_run: int) -> object:
        return tools["context.getCurrent"].call(
            fabric, {**session, "currentCommand": " ".join(_text(chance).split()[:6])}
        )

    yield _row("getCurrent", lambda _: tools["context.getCurrent"].call(fabric, session), "30 ms")
    yield _row("getCurrent with a command", current, "30 ms")
    yield _row("orient", lambda _: tools["context.orient"].call(fabric, {}), "30 ms")
    fabric.close()


def _within(run: int) -> MemoryFilter:
    return MemoryFilter(namespaces=(_NAMESPACES[run % len(_NAMESPACES)],))


def _row(name: str, do: Callable[[int], object], target: str) -> Row:
    for run in range(3):
        do(run)
    seconds, used = list[float](), list[float]()
    for run in range(RUNS):
        started, begun = time.perf_counter(), time.process_time()
        do(run)
        seconds.append(time.perf_counter() - started)
        used.append(time.process_time() - begun)
    return name, min(seconds), median(seconds), quantiles(seconds, n=20)[-1], median(used), target


def _text(chance: random.Random) -> str:
    """Return twelve random words. Frequent words are drawn more often."""
    return " ".join(f"word{int(_WORDS * chance.random() ** 3)}" for _ in range(12))


def _fill(store: Store, count: int, chance: random.Random) -> None:
    numbers, model, at = np.random.default_rng(7), load().name, now() - count
    centres = numbers.standard_normal((_CLUSTERS, 384), dtype=np.float32)
    for start in range(0, count, _AT_A_TIME):
        size = min(_AT_A_TIME, count - start)
        rows = centres[numbers.integers(_CLUSTERS, size=size)] + numbers.standard_normal((size, 384), dtype=np.float32)
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        with store.transaction():
            keys = [store.memories.insert(_memory(chance), at + start + place) for place in range(size)]
            halves = rows.astype("<f2")
            vectors = (Embedding(row.tobytes(), chance.randbytes(_TOKENS * TOKEN_BYTES)) for row in halves)
            store.vectors.replace(model, {key: {0: vector} for key, vector in zip(keys, vectors, strict=True)})


def _memory(chance: random.Random) -> Memory:
    return Memory(
        _text(chance),
        chance.choice(_TYPES),
        namespace=chance.choice(_NAMESPACES),
        importance=round(chance.random(), 2),
        tags=(f"tag{chance.randrange(50)}",),
    )


def _add_edges(store: Store, nodes: int, chance: random.Random) -> None:
    """Add three edges from each of the first `nodes` memories to random memories among them."""
    keys = store.items.all_keys()[:nodes]
    with store.transaction():
        for key in keys:
            for other in chance.sample(keys, 3):
                store.memory_edges.put(Edge(key, other, Relation.RELATES_TO, 0.8))


if __name__ == "__main__":
    sys.exit(main())
