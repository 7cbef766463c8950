"""Metrics of a team, and the erasure of deleted items from disk."""

import datetime as dt
from base64 import b64decode
from pathlib import Path
from uuid import uuid4

import psycopg

from palaver.team.server import identity, metrics
from palaver.team.server.database import TeamDatabase, administering
from palaver.team.server.erasure import Promise, clean

from .members import Machine, exchange, invited, serving, usage
from .postgres import DatabaseUrls, database, server
from .test_team_search import embedded, push


def share_usage(url: str, urls: DatabaseUrls, days: dict[str, list[str]], team: str) -> None:
    """Share the use of people on days."""
    for person, used in days.items():
        Machine(url, invited(urls, person, team)).push([usage(day, f"{team} {person}") for day in used])


def test_groups_of_fewer_than_three_people_are_omitted(url: str, urls: DatabaseUrls) -> None:
    """A day with two people is omitted, also from the total, so no difference reveals it."""
    days = {"ann": ["2026-01-01", "2026-01-02"], "bob": ["2026-01-01", "2026-01-02"], "cid": ["2026-01-01"]}
    share_usage(url, urls, days, "red")
    share_usage(url, urls, {name: ["2026-01-02"] for name in ("x", "y", "z")}, "blue")

    with administering(urls.owner) as connection:
        rows = metrics.usage(connection, identity.find_team(connection, "red"))

    assert [(row.day, row.people, row.tokens_in, row.sessions) for row in rows] == [("2026-01-01", 3, 30, 3)]


def test_nobody_sees_the_use_of_another(url: str, urls: DatabaseUrls) -> None:
    """The application's role cannot read the metrics, and a person sees only the own use."""
    ann, bob = (Machine(url, invited(urls, name, "green")) for name in ("ann", "bob"))
    ann.push([usage("2026-01-01", "green ann")])

    assert (ann.status().own, bob.status().own) == ({"usage": 1}, {})


def test_a_deletion_gets_dates_until_the_tables_are_clean(url: str, urls: DatabaseUrls) -> None:
    """The status promises dates, and states the date of the erasure after `palaver team clean`."""
    ann = Machine(url, invited(urls, "ann", str(uuid4())))
    bob = Machine(url, invited(urls, "bob", str(uuid4())))
    one = exchange(f"one {uuid4()}")
    ann.push([one])
    ann.push(withdrawn=[one.id])
    bob.push([exchange(f"kept {uuid4()}")])
    today = dt.datetime.now(dt.UTC).date()
    disk, backups = today + dt.timedelta(7), today + dt.timedelta(37)

    assert bob.status().erasures == ""
    assert ann.status().erasures == (
        f"1 deleted: erased from search now, from disk by {disk}, from backups by {backups}."
    )
    assert clean(urls.owner)
    done = today + dt.timedelta(30)
    assert ann.status().erasures == f"1 deleted: erased from search now, and from disk, from backups by {done}."
    assert clean(urls.owner) == []
    assert bob.status().own == {"exchange": 1}


def test_a_late_cleaning_is_stated(url: str, urls: DatabaseUrls) -> None:
    """No date in the past is promised."""
    ann = Machine(url, invited(urls, "ann", str(uuid4())))
    ann.push([exchange("late")])
    ann.push(withdrawn=[exchange("late").id])
    with psycopg.connect(urls.owner) as connection:
        connection.execute("UPDATE palaver.erasure SET at = at - interval '8 days' WHERE cleaned IS NULL")

    today = dt.datetime.now(dt.UTC).date()
    assert f"from disk by {today}; the operator has to run `palaver team clean`" in ann.status().erasures


def test_the_promise_follows_the_settings(pool: TeamDatabase, urls: DatabaseUrls) -> None:
    """The operator sets the days of cleaning and of backups."""
    with serving(pool, promise=Promise(1, 0)) as url:
        ann = Machine(url, invited(urls, "ann", str(uuid4())))
        one = exchange(f"promise {uuid4()}")
        ann.push([one])
        ann.push(withdrawn=[one.id])
        tomorrow = dt.datetime.now(dt.UTC).date() + dt.timedelta(1)

        assert f"from disk by {tomorrow}, from backups by {tomorrow}" in ann.status().erasures


def files_with(text: str | bytes) -> list[Path]:
    """Return the files of PostgreSQL's tables and indexes that contain a text."""
    content = text.encode() if isinstance(text, str) else text
    with psycopg.connect(server().get_uri(), autocommit=True) as connection:
        connection.execute("CHECKPOINT")
    found = list[Path]()
    for path in (server().pgdata / "base").rglob("*"):
        try:
            found += [path] if path.is_file() and content in path.read_bytes() else []
        except FileNotFoundError:  # PostgreSQL removes temporary files.
            continue
    return found


def test_a_clean_table_contains_no_deleted_text() -> None:
    """A deleted text is in PostgreSQL's files until they are rewritten, and then in none of them."""
    with database() as urls:
        pool = TeamDatabase(urls.app)
        with serving(pool) as url:
            ann = Machine(url, invited(urls, "ann"))
            word = f"plum{uuid4().hex}"
            secret, kept = exchange(f"{word} gone"), exchange(f"kept{word} stays")
            ann.push([secret, kept])
            ann.push(withdrawn=[secret.id])
            before = files_with(f"{word} gone")
            clean(urls.owner)
            after, stays = files_with(f"{word} gone"), files_with(f"kept{word} stays")
        pool.close()

    assert before
    assert after == []
    assert stays


def test_clean_search_tables_contain_no_deleted_word_or_vector() -> None:
    """A word that only deleted items contain is in no index, count or window of the search, and no vector stays."""
    with database() as urls:
        pool = TeamDatabase(urls.app)
        with serving(pool) as url:
            ann = Machine(url, invited(urls, "ann"))
            word = f"plum{uuid4().hex}7"
            secret, kept = (embedded(exchange(text), text) for text in (f"{word} gone", "the kettle stays"))
            push(ann, secret, kept)
            vectors = [b64decode(item.vectors[0].data) for item in (secret, kept)]
            with psycopg.connect(urls.owner) as connection:
                assert connection.execute("SELECT entries FROM palaver.term WHERE term = %s", (word,)).fetchone() == (
                    1,
                )
            before = [files_with(word), *map(files_with, vectors)]
            ann.push(withdrawn=[secret.id])
            with psycopg.connect(urls.owner) as connection:
                assert connection.execute("SELECT FROM palaver.term WHERE entries <= 0").fetchall() == []
            clean(urls.owner)
            after = [files_with(word), *map(files_with, vectors)]
        pool.close()

    assert all(before)
    assert [bool(files) for files in after] == [False, False, True]
