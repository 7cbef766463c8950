"""Search of a member: hits of this machine first, then those of the team, within a time limit."""

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from msgspec.structs import replace

from palaver.archiver.store.team_table import Membership
from palaver.core.home import Home
from palaver.core.query import Query
from palaver.observe.archive import Archive
from palaver.team.client import team_search
from palaver.team.client.team_search import begin
from palaver.team.protocol import TeamQuery

from .laptop import CLOCK, Laptop, address_of, set_address
from .members import invited
from .postgres import DatabaseUrls

QUERY = ("search", "keep two years of readings in SQLite")


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait longer for the server, because the machine of the tests can be slow."""
    monkeypatch.setattr(team_search, "SECONDS", 30.0)


@pytest.fixture(scope="module")
def ann(tmp_path_factory: pytest.TempPathFactory, built: Home, url: str, urls: DatabaseUrls) -> Laptop:
    """Return the laptop of a person who shares a project."""
    laptop = Laptop(tmp_path_factory.mktemp("ann"), built)
    laptop.team("join", url, invited(urls, "Ann"))
    laptop.team("share", CLOCK)
    laptop.push()
    return laptop


@pytest.fixture
def bob(tmp_path: Path, ann: Laptop, urls: DatabaseUrls) -> Laptop:
    """Return the laptop of a colleague, with a conversation about something else."""
    laptop = Laptop(tmp_path / "bob")
    laptop.write("oven", "talk-1", "door")
    laptop.team("join", address_of(ann), invited(urls, f"Bob {uuid4()}"))
    return laptop


@pytest.fixture
def silent_server() -> Iterator[str]:
    """URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def found(laptop: Laptop, *arguments: str) -> Any:
    return json.loads(laptop.run(*arguments, "--json").stdout)


def test_hits_of_the_team_follow_in_a_second_block(bob: Laptop) -> None:
    """A colleague's hit has the name of the person and of the project, and is quoted text."""
    shown = bob.run(*QUERY).stdout

    _, heading, block = shown.partition("## From the team acme (")
    assert heading
    assert f"Ann [{CLOCK}] Keep two years of readings in SQLite" in block
    assert "<recalled-" in block
    assert f"To open them: {address_of(bob)} in a browser" in block
    [hit, *_] = found(bob, *QUERY)["team"]["hits"]
    assert (hit["person"], hit["project"]) == ("Ann", CLOCK)
    assert hit["at"].endswith("Z")


def test_a_project_that_only_the_team_has_is_searched(bob: Laptop) -> None:
    """Hits of a colleague's project are shown although this machine does not know it. Without hits, it is an error."""
    done = bob.run(*QUERY, "--project", CLOCK)

    assert f"Unknown project: {CLOCK}. Only the team has hits in it." in done.stderr
    assert "## From the team acme (" in done.stdout
    reply = found(bob, *QUERY, "--project", CLOCK)
    assert (reply["results"], reply["found"]) == ([], 0)
    assert reply["team"]["hits"]
    assert f"Unknown project: {CLOCK}" in bob.run(*QUERY, "--project", CLOCK, "--no-team", code=2).stderr
    assert "Unknown project: nothing" in bob.run(*QUERY, "--project", "nothing", code=2).stderr


def test_own_hits_are_not_repeated(ann: Laptop) -> None:
    """What this person shares is in the first block only."""
    reply = found(ann, *QUERY)

    assert reply["results"]
    assert reply["team"]["hits"] == []
    assert "## From the team acme\nNo hits." in ann.run(*QUERY).stdout


@pytest.mark.parametrize(
    "arguments", [("--no-team",), ("--tag", "later"), ("--session", "talk-1"), ("--kind", "document")]
)
def test_some_searches_stay_on_this_machine(bob: Laptop, arguments: tuple[str, ...]) -> None:
    """With --no-team, and for filters that only this machine can answer, the team is not asked."""
    bob.run("session", "tag", "talk-1", "later")
    assert "team" not in found(bob, *QUERY, *arguments)


@pytest.mark.parametrize("setting", ["team_search = false", 'private_projects = ["{here}"]'])
def test_settings_keep_the_words_of_a_search_here(
    bob: Laptop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, setting: str
) -> None:
    """The team is not asked if the setting is off, nor from the folder of a private project."""
    monkeypatch.chdir(tmp_path)
    bob.home.config.write_text(setting.format(here=tmp_path))

    assert "team" not in found(bob, *QUERY)


def test_the_hits_of_this_machine_do_not_need_the_server(
    bob: Laptop, silent_server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does not answer, or is not there, is named after the hits of this machine."""
    monkeypatch.setattr(team_search, "SECONDS", 0.7)
    for url in (silent_server, "http://127.0.0.1:9"):
        set_address(bob, url)
        shown = bob.run("search", "door fail").stdout
        assert "Why does the door fail" in shown.partition("## From the team")[0]
        assert "## From the team acme\nTeam server not reached." in shown


def test_only_clean_words_and_filters_leave(bob: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    """A search leaves without secrets and home folders, and names projects instead of their folders."""
    secret = ("ghp_" + "A1b2C3d4E5f6G7h8I9j0" * 2)[:40]
    home = Path.home()
    sent = list[TeamQuery]()

    def record(_home: Home, _team: Membership, query: TeamQuery) -> None:
        sent.append(query)

    monkeypatch.setattr("palaver.team.client.team_search.TeamSearch", record)
    query = Query.parse(f"why {secret} in {home}/secret-place", projects=[f"{home}/oven"], limit=40)
    with Archive(bob.home) as archive:
        begin(archive, query, Path("/"))

    [asked] = sent
    assert secret not in asked.text
    assert str(home) not in asked.text
    assert json.loads(bytes(asked.filters))["projects"] == ["oven"]
    assert (asked.limit, asked.others) == (5, True)


def test_a_revoked_member_is_told_so(bob: Laptop) -> None:
    """A refusal is shown instead of hits."""
    bob.home.team_key.with_name("token").unlink(missing_ok=True)
    with Archive(bob.home) as archive, archive.store.transaction():
        membership = archive.store.team.joined()
        assert membership is not None
        archive.store.team.save(replace(membership, device=str(uuid4())))

    assert "was revoked" in found(bob, *QUERY)["team"]["note"]


def test_a_search_without_a_team_loads_no_client(built: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that never joined imports nothing of the team, and its JSON has no field for it."""
    monkeypatch.setenv("PALAVER_HOME", str(built.root))
    program = "import sys; from palaver.cli import main\n"
    program += "main(['search', 'which tide comes first', '--json'], standalone_mode=False)\n"
    program += "print(*(name for name in sys.modules if name.startswith('palaver.team')), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert done.stderr.split() == []
    assert "team" not in json.loads(done.stdout)
