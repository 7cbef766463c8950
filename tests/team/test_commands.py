"""Commands of the administrator in processes of their own: a team from its first command to its last."""

import datetime as dt
import ipaddress
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import uuid4

import httpx2
import psycopg
import pytest
from click.testing import CliRunner, Result
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from msgspec import json

from palaver.cli import main
from palaver.team.protocol import Hello, TeamHits, TeamQuery
from palaver.team.server.migration import latest

from .members import Machine, Refused, exchange, full_copy, request, usage
from .postgres import DatabaseUrls, database

NO_ENV: Mapping[str, str] = MappingProxyType({})
TEAM = ("-m", "palaver", "team")
UNPRIVILEGED = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Folder that PostgreSQL's user can enter, unlike pytest's when root runs the tests."""
    path = Path(mkdtemp(prefix="palaver-team-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path)


def run(*words: str | Path, status: int = 0, env: Mapping[str, str] = NO_ENV) -> Result:
    """Run `palaver team` with these words, and check its exit status.

    With `--data` and for failures of the server, it runs in a process of its own: PostgreSQL stops when the last
    process has ended, and the server handles signals.
    """
    if "--data" not in words and status != 1:
        ran = CliRunner().invoke(main, ["team", *map(str, words)], env=env)
        assert ran.exit_code == status, ran.output
        return ran
    command = [sys.executable, *TEAM, *map(str, words)]
    done = subprocess.run(command, env={**os.environ, **env}, capture_output=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr.decode()
    return Result(CliRunner(), done.stdout, done.stderr, b"", None, status, None)


def result(*words: str | Path, env: Mapping[str, str] = NO_ENV) -> Any:
    """Return the JSON of a command."""
    return json.decode(run(*words, "--json", env=env).stdout)


class Served(NamedTuple):
    """Running `palaver team serve`."""

    url: str
    process: subprocess.Popen[str]
    messages: str

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Send a signal, and return the exit status."""
        self.process.send_signal(number)
        return self.process.wait(60)


@contextmanager
def serving(
    *words: str | Path, start: tuple[str, ...] = (), python: str = sys.executable, env: Mapping[str, str] = NO_ENV
) -> Generator[Served]:
    """Run `palaver team serve` on a free port until the block ends."""
    command = [*start, python, *TEAM, "serve", "--port", "0", *map(str, words)]
    with subprocess.Popen(command, env={**os.environ, **env}, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said = list[str]()
        try:
            for line in process.stderr:
                said.append(line)
                if address := re.search(r"Serving the team at (\S+)\. ", line):
                    yield Served(address[1], process, "".join(said))
                    break
            else:
                pytest.fail("".join(said))
        finally:
            if process.poll() is None:
                process.terminate()
                process.wait(60)


@pytest.fixture(scope="module")
def acme(urls: DatabaseUrls) -> dict[str, str]:
    """Environment of an administrator whose database has a team."""
    environment = {"PALAVER_TEAM_DATABASE": urls.owner}
    result("create", "acme", env=environment)
    return environment


def test_a_team_lives_in_a_folder_from_the_first_command_to_the_last(folder: Path) -> None:
    """Two commands set up a team whose members join, push and search, and its data survives a stop."""
    data = folder / "data"
    with serving("--data", data) as served:
        assert f"palaver team invite PERSON --data {data}\n" in run("create", "acme", "--data", data).stdout
        ann = Machine(served.url, result("invite", "ann", "--data", data)["code"], "laptop")
        ann.push([exchange("the brass kettle whistles")])
        assert result("people", "--data", data) == {
            "people": [{"name": "ann", "machines": ["laptop"], "tokens_until": [], "removed": False}]
        }
        run("invite", "bob", "--data", data)
        unknown = run("remove", "nobody", "--team", "acme", "--data", data, status=2).stderr
        assert f"palaver team people --team acme --data {data}\n" in unknown
        access = result("token", "bob", "--url", served.url, "--data", data)["token"]
        [hit] = request(served.url, "search", TeamQuery("brass kettle"), TeamHits, access).hits
        assert hit.person == "ann"
        ann.push(withdrawn=[hit.id])
        ann.push([exchange("the copper kettle is silent")])
        assert served.stop() == 0
    assert not (data / "postmaster.pid").exists()
    assert "palaver.item_" in " ".join(result("clean", "--data", data)["tables"])
    with serving("--data", data) as served:
        access = result("token", "bob", "--url", served.url, "--data", data)["token"]
        [hit] = request(served.url, "search", TeamQuery("copper kettle"), TeamHits, access).hits
        assert served.stop(signal.SIGINT) == 0


def test_postgresql_stops_with_the_server_after_an_earlier_one_was_killed(folder: Path) -> None:
    """A killed server leaves PostgreSQL running. The next one stops it, so that its folder can be copied."""
    data = folder / "data"
    with serving("--data", data) as served:
        assert served.stop(signal.SIGKILL) == -signal.SIGKILL
    assert (data / "postmaster.pid").exists()
    with serving("--data", data) as served:
        assert served.stop() == 0

    assert not (data / "postmaster.pid").exists()


@pytest.mark.parametrize(
    "words", [("people",), ("create", "acme"), ("invite", "ann"), ("clean",), ("metrics",)], ids=str
)
def test_a_folder_without_a_database_is_not_filled(folder: Path, words: tuple[str, ...]) -> None:
    """A mistyped folder is named, and nothing is created in it."""
    data = folder / "dtaa"

    assert f"No team database in {data}" in run(*words, "--data", data, status=2).stderr
    assert not data.exists()


def test_a_revoked_person_is_refused(urls: DatabaseUrls, acme: dict[str, str]) -> None:
    """After `revoke`, neither the machine nor the token of a person is accepted. What was shared stays."""
    with serving("--database", urls.app) as served:
        cid = Machine(served.url, result("invite", "cid", env=acme)["code"])
        cid.push([exchange(f"a spoon of {uuid4()}")])
        access = result("token", "cid", "--url", served.url, env=acme)["token"]
        assert run("revoke", "cid", env=acme).stdout == "Revoked 1 machine of cid, and all tokens.\n"
        for use in (cid.status, lambda: request(served.url, "search", TeamQuery("spoon"), TeamHits, access)):
            with pytest.raises(Refused) as refused:
                use()
            assert refused.value.status == 401
        again = Machine(served.url, result("invite", "cid", env=acme)["code"])
        assert again.status().own == {"exchange": 1}


def test_revoking_a_machine_leaves_tokens_and_says_so(urls: DatabaseUrls, acme: dict[str, str]) -> None:
    """`revoke --machine` names the command that ends the tokens too, and `people` lists until when they work."""
    with serving("--database", urls.app) as served:
        Machine(served.url, result("invite", "ivy", env=acme)["code"], "laptop")
        access = result("token", "ivy", "--url", served.url, "--days", "2", env=acme)["token"]
        done = run("revoke", "ivy", "--machine", "laptop", env=acme).stdout
        assert done.startswith("Revoked 1 machine of ivy.\n")
        assert "palaver team revoke ivy" in done
        request(served.url, "search", TeamQuery("spoon"), TeamHits, access)
        day = (dt.datetime.now(dt.UTC) + dt.timedelta(2)).date().isoformat()
        assert f"ivy: no machine; tokens until {day}\n" in run("people", env=acme).stdout
        run("revoke", "ivy", env=acme)
        with pytest.raises(Refused):
            request(served.url, "search", TeamQuery("spoon"), TeamHits, access)


def test_a_person_is_removed_with_everything_shared_after_a_confirmation(
    urls: DatabaseUrls, acme: dict[str, str]
) -> None:
    """Without a terminal, `remove` needs `--yes`. It then reports what it deleted, and how to erase it from disk."""
    with serving("--database", urls.app) as served:
        kim = Machine(served.url, result("invite", "Kim", env=acme)["code"])
        kim.push([exchange(f"a spoon of {uuid4()}"), usage("2026-01-03", "kim")])
        refused = run("remove", "kim", status=2, env=acme).stderr
        assert "--yes" in refused
        assert kim.status().own == {"exchange": 1, "usage": 1}
        done = run("remove", "kim", "--yes", env=acme)
        assert done.stdout.startswith("Revoked 1 machine of Kim, and all tokens. Deleted 2 items.\n")
        assert done.stdout.endswith("To erase them from PostgreSQL's files: palaver team clean\n")
        with pytest.raises(Refused):
            kim.status()
        again = result("remove", "kim", "--yes", env=acme)
        assert again == {"person": "Kim", "machines": 0, "items": 0, "full_copies": 0}


def test_the_full_copies_of_a_removed_person_are_counted_until_they_are_cleaned(
    urls: DatabaseUrls, acme: dict[str, str], tmp_path: Path
) -> None:
    """`remove` says how many stay in the store, and its command repeats the options of the call."""
    place = tmp_path / "store"
    with serving("--database", urls.app, "--raw-store", place, "--raw-key", tmp_path / "raw.key") as served:
        lou = Machine(served.url, result("invite", "Lou", env=acme)["code"])
        shared = exchange(f"a spoon of {uuid4()}")
        lou.push([shared, full_copy(shared, "steam")])
    done = run("remove", "Lou", "--yes", "--database", urls.owner).stdout
    assert "1 full copy stays in the store until you clean it.\n" in done
    assert done.endswith("palaver team clean --raw-store STORE --database URL\n")
    assert result("clean", "--raw-store", place, env=acme)["full_copies"] == 1
    assert "full copy" not in run("remove", "Lou", "--yes", env=acme).stdout
    with serving("--database", urls.app) as served:
        assert "full copies" not in served.messages


def test_removed_people_are_listed_as_such_and_not_counted(urls: DatabaseUrls, acme: dict[str, str]) -> None:
    """They keep their line, until a new invitation makes them members again."""
    with serving("--database", urls.app) as served:
        mia = Machine(served.url, result("invite", "Mia", env=acme)["code"])
        Machine(served.url, result("invite", "Noa", env=acme)["code"])
        run("invite", "Ole", env=acme)
        before = mia.status().people
        run("remove", "Noa", "--yes", env=acme)
        assert mia.status().people == before - 1
        listed = run("people", env=acme).stdout
        assert "Noa: removed\n" in listed
        assert "Ole: no machine\n" in listed
        run("invite", "Noa", env=acme)
        assert mia.status().people == before
        assert "Noa: no machine\n" in run("people", env=acme).stdout


def test_names_of_people_match_in_any_case(acme: dict[str, str]) -> None:
    """Another spelling of a name is the same person, and the team's spelling is shown."""
    run("invite", "Jo", env=acme)

    again = run("invite", "jo", env=acme)
    assert again.stdout.startswith("Jo joins within 15 minutes, once: palaver team join ADDRESS ")
    assert "ADDRESS is the one that `palaver team serve` prints" in again.stderr
    assert result("token", "JO", env=acme)["person"] == "Jo"
    names = [member["name"] for member in result("people", env=acme)["people"]]
    assert [name for name in names if name.lower() == "jo"] == ["Jo"]


def test_a_token_states_what_it_grants(acme: dict[str, str]) -> None:
    """The token alone is on standard output, and its rights are on standard error."""
    run("invite", "dan", env=acme)
    shown = run("token", "dan", "--scope", "read", "--days", "3", "--url", "https://team.test/", env=acme)
    listed = result("token", "dan", "--scope", "read", "--scope", "push", env=acme)

    assert re.fullmatch(r"[\w-]{43}\n", shown.stdout)
    assert "dan for https://team.test/mcp expires in 3 days" in shown.stderr
    assert (listed["scopes"], listed["audience"]) == (["read", "push"], "http://127.0.0.1:8347/mcp")


def test_metrics_omit_small_groups(urls: DatabaseUrls, acme: dict[str, str]) -> None:
    """A day of two people is not shown, and one of three is."""
    assert "No use of three or more people" in run("metrics", env=acme).stdout
    with serving("--database", urls.app) as served:
        for name in ("eve", "fay", "gil"):
            machine = Machine(served.url, result("invite", name, env=acme)["code"])
            machine.push([usage("2026-01-01", name), *([] if name == "gil" else [usage("2026-01-02", name)])])

    assert run("metrics", env=acme).stdout.startswith("2026-01-01  spoon  claude-code  opus: 3 people, 30 + 3 tokens")
    assert [row["day"] for row in result("metrics", env=acme)["usage"]] == ["2026-01-01"]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("create", "acme"), "There is a team named acme"),
        (("people", "--team", "other"), "No team other"),
        (("token", "nobody"), "No person nobody"),
        (("remove", "nobody"), "No person nobody"),
        (("revoke", "ann", "--machine", "fridge"), "ann has no machine fridge"),
        (("invite", " "), "The name of the person is empty"),
    ],
    ids=str,
)
def test_a_wrong_name_is_named(acme: dict[str, str], words: tuple[str, ...], problem: str) -> None:
    """A usage error states the name."""
    if "ann" in words:
        run("invite", "ann", env=acme)

    assert problem in run(*words, status=2, env=acme).stderr


def test_a_database_of_another_schema_is_refused() -> None:
    """A server starts neither on an older schema nor on a newer one, and only `migrate` upgrades."""
    with database(migrated=False) as empty:
        owner = {"PALAVER_TEAM_DATABASE": empty.owner}
        assert "Run `palaver team migrate" in run("create", "acme", status=1, env=owner).stderr
        assert result("migrate", env=owner) == {"schema": latest(), "added": [*range(1, latest() + 1)]}
        assert "already" in run("migrate", env=owner).stdout
        with psycopg.connect(empty.owner) as connection:
            connection.execute("INSERT INTO palaver.schema_version (version) VALUES (99)")
        for words, url in (("serve", empty.app), ("people", empty.owner), ("migrate", empty.owner)):
            refused = run(words, status=1, env={"PALAVER_TEAM_DATABASE": url}).stderr
            assert "The database has schema 99" in refused
            assert "Update Palaver" in refused


def test_the_server_refuses_a_role_that_bypasses_row_security(urls: DatabaseUrls) -> None:
    """With the URL of the owner, the server does not start."""
    assert "can bypass row security" in run("serve", "--database", urls.owner, status=1).stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ((), "Give one of --database URL"),
        (("--database", "x", "--data", "y"), "Give one of --database URL"),
        (("--database", "x", "--host", "192.0.2.1"), "so it needs TLS"),
        (("--database", "x", "--certificate", "c.pem"), "Give both --certificate and --key"),
        (("--database", "x", "--host", "0.0.0.0", "--certificate", "c", "--key", "k"), "give theirs with --url"),
    ],
    ids=str,
)
def test_a_server_that_would_be_unsafe_does_not_start(words: tuple[str, ...], problem: str) -> None:
    """Addresses that other machines reach need TLS, and an address that members can use."""
    assert problem in " ".join(run("serve", *words, status=2).stderr.split())


def certificate(folder: Path) -> tuple[Path, Path]:
    """Return the PEM files of a self-signed certificate for 127.0.0.1, and of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "team.test")])
    now = dt.datetime.now(dt.UTC)
    signed = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now - dt.timedelta(1), now + dt.timedelta(1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem, private = folder / "certificate.pem", folder / "key.pem"
    pem.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private.write_bytes(key.private_bytes(serialization.Encoding.PEM, *form))
    return pem, private


def test_a_certificate_encrypts_all_requests(tmp_path: Path, urls: DatabaseUrls) -> None:
    """With a certificate, the server speaks only TLS, to clients that trust this certificate."""
    pem, key = certificate(tmp_path)
    with serving("--database", urls.app, "--certificate", pem, "--key", key) as served:
        assert served.url.startswith("https://127.0.0.1:")
        trusting = ssl.create_default_context(cafile=str(pem))
        with httpx2.Client(verify=trusting, trust_env=False) as client:
            assert json.decode(client.get(f"{served.url}/v1/hello").content, type=Hello).protocol == 1
            refused = client.post(f"{served.url}/mcp", json={})
            assert f'resource_metadata="{served.url}/.well-known/' in refused.headers["www-authenticate"]
        for address, trust in ((served.url, True), (served.url.replace("https", "http"), trusting)):
            with httpx2.Client(verify=trust, trust_env=False) as client, pytest.raises(httpx2.TransportError):
                client.get(f"{address}/v1/hello")


def test_an_unusable_certificate_is_refused_before_the_start(tmp_path: Path, urls: DatabaseUrls) -> None:
    """A file that is no certificate, or none at all, is named as the problem."""
    pem, key = certificate(tmp_path)
    words = ("serve", "--port", "0", "--database", urls.app)
    for first, second in ((key, pem), (tmp_path / "missing", key)):
        refused = run(*words, "--certificate", first, "--key", second, status=1).stderr
        assert "The certificate cannot be used" in refused
        assert "Serving" not in refused


def python_of_others() -> str:
    """Return an interpreter with our packages that another user can run. Skip the test without one."""
    path = os.pathsep.join(filter(None, sys.path))
    for python in (sys.executable, "/usr/bin/python3"):
        tried = subprocess.run(
            [*UNPRIVILEGED, python, "-c", "import numpy, palaver.cli, psycopg"],
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return python
    pytest.skip("no interpreter that another user can run")


@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("setpriv") is None, reason="needs root and setpriv")
def test_a_server_needs_no_rights_of_root(folder: Path) -> None:
    """Any user can serve a team from a folder. Root's PostgreSQL runs as a user of its own, in the other tests."""
    shutil.chown(folder, "nobody", "nogroup")
    python = python_of_others()
    environment = {
        "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
        "HOME": str(folder),
        "PALAVER_HOME": str(folder / "home"),
    }
    with serving("--data", folder / "data", start=UNPRIVILEGED, python=python, env=environment) as served:
        with httpx2.Client(trust_env=False) as client:
            assert client.get(f"{served.url}/v1/hello").status_code == 200
        assert (folder / "data" / "PG_VERSION").owner() == "nobody"
        assert served.stop() == 0


def test_root_needs_a_folder_that_others_can_enter(tmp_path: Path) -> None:
    """PostgreSQL does not run as root, so a folder below a private one is refused, and not opened for others."""
    if os.geteuid() != 0:
        pytest.skip("only for root")
    tmp_path.chmod(0o700)

    assert f"cannot enter {tmp_path}" in run("serve", "--data", tmp_path / "data", status=1).stderr
    assert tmp_path.stat().st_mode & 0o777 == 0o700
