"""Tests of agents/clients/client_setup.py: every client, with its real files."""

import json
import os
import stat
from pathlib import Path

import pytest

from palaver.agents.clients import config_format
from palaver.agents.clients.client_setup import ConfigChange, apply, backup_of, plan, plan_removal, snippet
from palaver.agents.clients.client_table import CLIENTS, Client, ServerEntry, find_client
from palaver.core.errors import ChangedMeanwhile, ClientConfigUnusable

from .config_samples import BROKEN, RICH, entry, launch, values, write

SERVER = ServerEntry("/home/zoë/my tools/palaver", ("mcp",), {"PALAVER_HOME": "/home/zoë/my archive"})
MOVED = ServerEntry("/opt/palaver", ("mcp", "--toolset", "theo"), {})
CURSOR = find_client("cursor")

EDITED = [client for client in CLIENTS if client.format != "yaml"]
every_client = pytest.mark.parametrize("client", EDITED, ids=lambda client: client.name)


def install(client: Client, server: ServerEntry = SERVER) -> ConfigChange:
    change = plan(client, server)
    apply(change)
    return change


def remove(client: Client) -> ConfigChange:
    change = plan_removal(client)
    apply(change)
    return change


def folder_of(client: Client) -> list[str]:
    return sorted(path.name for path in client.path.parent.iterdir())


def test_samples_cover_every_client() -> None:
    """Each client has a rich sample file, and a broken one if its file is edited."""
    assert set(RICH) == {client.name for client in CLIENTS}
    assert set(BROKEN) == {client.name for client in EDITED}


def test_yaml_is_shown_and_never_edited() -> None:
    """The entry for a YAML file is a text to paste, whatever the file contains, even recursive aliases."""
    goose = find_client("goose")
    for content in (None, "", "a: &a\n  b: *a\n", "extensions: [\n", RICH["goose"]):
        path = goose.path if content is None else write(goose.path, content)
        change = install(goose)
        assert (change.action, change.is_needed, change.diff) == ("paste", False, []), content
        assert remove(goose).action == "absent", content
        assert (path.read_text() if path.exists() else None) == content
    write(goose.path, RICH["goose"].replace("extensions:\n", install(goose).snippet, 1))
    assert launch(goose) == (["/home/zoë/my tools/palaver", "mcp"], SERVER.env)
    assert entry(goose)["name"] == "palaver"
    assert install(goose).action == "keep"
    with pytest.raises(ClientConfigUnusable, match="does not edit YAML") as raised:
        plan_removal(goose)
    assert raised.value.hint == "Delete the entry `palaver` below `extensions`."


def test_equal_keys_are_refused() -> None:
    """An object with two entries of the server, or two tables of servers, is refused and stays unchanged."""
    for text in (
        '{"mcpServers": {"palaver": {"command": "a"}, "palaver": {"command": "b"}}}',
        '{"mcpServers": {}, "mcpServers": {"palaver": {"command": "b"}}}',
    ):
        path = write(CURSOR.path, text)
        with pytest.raises(ClientConfigUnusable, match="occurs 2 times"):
            plan(CURSOR, SERVER)
        with pytest.raises(ClientConfigUnusable, match="occurs 2 times"):
            plan_removal(CURSOR)
        assert path.read_text() == text


def test_an_entry_that_cannot_be_installed_is_not_removed() -> None:
    """An entry that Palaver could not have written, such as one in an inline table, stays where it is."""
    codex = find_client("codex")
    path = write(codex.path, 'mcp_servers = { palaver = { command = "mine" } }\n')
    with pytest.raises(ClientConfigUnusable, match="cannot be extended"):
        plan(codex, SERVER)
    with pytest.raises(ClientConfigUnusable, match="cannot be extended"):
        plan_removal(codex)
    assert path.read_text() == 'mcp_servers = { palaver = { command = "mine" } }\n'


def test_removal_restores_an_entry_of_another_program() -> None:
    """An entry that Palaver replaced is restored, also if the file changed since. An older entry of Palaver is not."""
    for command, restored in (("mine", True), ("/old/bin/palaver", False)):
        own = {"command": command, "args": ["x"], "note": "kept"}
        path = write(CURSOR.path, json.dumps({"mcpServers": {"palaver": own}}, indent=2))
        assert install(CURSOR).action == "update"
        path.write_text(path.read_text().replace("{", '{ "later": 1,', 1))
        assert remove(CURSOR).action == "remove"
        servers = values(CURSOR).get("mcpServers", {})
        assert values(CURSOR)["later"] == 1
        assert servers == ({"palaver": own} if restored else {}), command
        assert not backup_of(path).exists()


def test_a_link_at_the_place_of_the_backup_is_not_followed(tmp_path: Path) -> None:
    """Nothing is written through a link to another file, and removal does not delete or read its target."""
    precious = write(tmp_path / "precious", '{"mcpServers": {}}')
    path = write(CURSOR.path, '{"mcpServers": {}}')
    backup_of(path).symlink_to(precious)
    with pytest.raises(ClientConfigUnusable, match="link is at the place"):
        install(CURSOR)
    assert (path.read_text(), precious.read_text()) == ('{"mcpServers": {}}', '{"mcpServers": {}}')
    backup_of(path).unlink()
    install(CURSOR)
    backup_of(path).unlink()
    backup_of(path).symlink_to(precious)
    remove(CURSOR)
    assert precious.read_text() == '{"mcpServers": {}}'
    assert backup_of(path).is_symlink()


@every_client
@pytest.mark.parametrize("before", [None, "", "\n"], ids=["missing", "empty", "blank"])
def test_a_file_without_content_gets_the_entry(client: Client, before: str | None) -> None:
    """A missing, empty or blank file gets the entry, and removal restores it."""
    if before is not None:
        write(client.path, before)
    change = install(client)

    assert change.action == "add"
    assert launch(client) == (["/home/zoë/my tools/palaver", "mcp"], SERVER.env)
    remove(client)
    assert (client.path.read_text() if client.path.exists() else None) == before
    assert not backup_of(client.path).exists()


@every_client
def test_a_rich_file_keeps_everything_else(client: Client) -> None:
    """Other values, comments, order and line ends of a file are kept. Only whole rows are added, and a comma."""
    path = write(client.path, RICH[client.name])
    before = values(client)
    install(client)
    after = values(client)

    assert launch(client) == (["/home/zoë/my tools/palaver", "mcp"], SERVER.env)
    del after[client.section]["palaver"]
    assert after == {**before, client.section: before.get(client.section, {})}
    new = path.read_bytes().decode()
    kept = iter(new)
    assert all(letter in kept for letter in RICH[client.name])  # The old text is a subsequence of the new one.
    assert new.count("\r\n") in {0, new.count("\n")}
    assert backup_of(path).read_bytes() == RICH[client.name].encode()


@every_client
def test_a_second_run_changes_nothing(client: Client) -> None:
    """Installing again is a change of kind `keep` that writes nothing, and removing again one of kind `absent`."""
    path = write(client.path, RICH[client.name])
    install(client)
    state = (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino)
    again = install(client)

    assert (again.action, again.diff) == ("keep", [])
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_ino) == state
    assert [remove(client).action for _ in range(2)] == ["remove", "absent"]


@every_client
def test_removal_restores_the_file(client: Client) -> None:
    """Removal restores the previous bytes and leaves no other file."""
    path = write(client.path, RICH[client.name])
    before = folder_of(client)
    install(client)
    remove(client)

    assert path.read_bytes() == RICH[client.name].encode()
    assert folder_of(client) == before


@every_client
def test_removal_keeps_later_changes(client: Client) -> None:
    """If the file was changed after the installation, removal deletes only the entry."""
    path = write(client.path, RICH[client.name])
    install(client)
    mark = {"json": "\n// later\n", "toml": "\n# later\n"}[client.format]
    path.write_bytes(path.read_bytes() + mark.encode())
    before = values(client)
    remove(client)

    del before[client.section]["palaver"]
    after = values(client)
    assert {**after, client.section: after.get(client.section) or {}} == before
    assert path.read_bytes().decode().endswith(mark)


@every_client
def test_a_broken_file_is_refused(client: Client) -> None:
    """A file that cannot be parsed, or has no table of servers, is refused and stays unchanged."""
    path = write(client.path, BROKEN[client.name])
    with pytest.raises(ClientConfigUnusable, match=r"invalid|is not a table") as raised:
        plan(client, SERVER)
    assert str(path) in str(raised.value)
    with pytest.raises(ClientConfigUnusable, match=r"invalid|is not a table"):
        plan_removal(client)

    assert path.read_bytes() == BROKEN[client.name].encode()
    assert folder_of(client) == [path.name]


@every_client
def test_an_entry_is_updated(client: Client) -> None:
    """A new command replaces the old one, PALAVER_HOME is removed, and the user's own fields are kept."""
    write(client.path, RICH[client.name])
    install(client)
    text, own = client.path.read_text("utf-8"), {"note": "mine"}
    form = {"json": config_format}.get(client.format)
    if form is not None:
        text = form.put(text, (client.section, "palaver", "note"), "mine")
        text = form.put(text, (client.section, "palaver", client.shape.env, "DEBUG"), "1")
        client.path.write_text(text, "utf-8")
    change = install(client, MOVED)

    assert change.action == "update"
    assert launch(client) == (["/opt/palaver", "mcp", "--toolset", "theo"], {"DEBUG": "1"} if form else {})
    assert form is None or own.items() <= entry(client).items()
    assert backup_of(client.path).read_bytes() == RICH[client.name].encode()


@every_client
def test_the_snippet_is_a_complete_file(client: Client, home: Path) -> None:
    """The snippet of a client is what a missing file would contain."""
    install(client)

    assert client.path.read_text("utf-8") == snippet(client, SERVER)
    assert client.path.is_relative_to(home)


@every_client
def test_special_characters_survive(client: Client) -> None:
    """Quotes, backslashes, braces, percent signs and other alphabets in a path are kept."""
    odd = ServerEntry('/a "b"/c\'d/e\\f/{g}/%h/ж 東/#i', ("mcp", "--x=$y"), {"PALAVER_HOME": "/j: k, [l]"})
    write(client.path, RICH[client.name])
    install(client, odd)

    assert launch(client) == ([odd.command, *odd.args], odd.env)


def test_a_path_that_is_not_utf_8_is_refused() -> None:
    """A command with bytes that are not UTF-8 cannot be stored, so nothing is written."""
    with pytest.raises(ClientConfigUnusable, match="not UTF-8"):
        plan(CURSOR, ServerEntry(os.fsdecode(b"/\xff/palaver"), ("mcp",), {}))


@pytest.mark.parametrize(
    "content", [b'\xff\xfe{"a": 1}', b'{"a": "\xff"}', b"{" * 100_000], ids=["UTF-16", "Latin-1", "deep"]
)
def test_other_content_is_refused(content: bytes) -> None:
    """Content that is not UTF-8 or nested too deeply is refused and stays unchanged."""
    path = write(CURSOR.path, content)
    with pytest.raises(ClientConfigUnusable):
        plan(CURSOR, SERVER)

    assert path.read_bytes() == content


def test_a_folder_or_pipe_is_refused() -> None:
    """A folder or a named pipe in place of the file is refused without waiting."""
    CURSOR.path.mkdir(parents=True)
    with pytest.raises(ClientConfigUnusable, match="not a regular file"):
        plan(CURSOR, SERVER)
    CURSOR.path.rmdir()
    os.mkfifo(CURSOR.path)
    with pytest.raises(ClientConfigUnusable, match="not a regular file"):
        plan(CURSOR, SERVER)


def test_an_inline_table_of_servers_is_refused() -> None:
    """TOML cannot extend an inline table, so the file is refused unchanged."""
    codex = find_client("codex")
    path = write(codex.path, 'mcp_servers = { x = { command = "y" } }\n')
    with pytest.raises(ClientConfigUnusable, match="inline table"):
        plan(codex, SERVER)

    assert "palaver" not in path.read_text()


def test_a_change_in_between_is_detected() -> None:
    """A file that changed after the plan is not overwritten."""
    path = write(CURSOR.path, RICH["cursor"])
    change = plan(CURSOR, SERVER)
    path.write_text("{}")
    with pytest.raises(ChangedMeanwhile):
        apply(change)

    assert path.read_text() == "{}"
    assert folder_of(CURSOR) == ["mcp.json"]


def test_permissions_and_links_are_kept(tmp_path: Path) -> None:
    """A link stays a link to the changed file, which keeps its permissions. The backup is not more readable."""
    target = write(tmp_path / "dot files" / "mcp.json", RICH["cursor"])
    target.chmod(0o640)
    CURSOR.path.parent.mkdir(parents=True)
    CURSOR.path.symlink_to(target)
    install(CURSOR)

    assert CURSOR.path.readlink() == target
    assert "palaver" in target.read_text("utf-8")
    assert [stat.S_IMODE(path.stat().st_mode) for path in (target, backup_of(CURSOR.path))] == [0o640, 0o640]
    remove(CURSOR)
    assert (CURSOR.path.readlink(), target.read_bytes()) == (target, RICH["cursor"].encode())


def test_new_files_are_private() -> None:
    """A new file is readable only by the user."""
    install(CURSOR)

    assert stat.S_IMODE(CURSOR.path.stat().st_mode) == 0o600


def test_a_new_installation_replaces_an_old_backup() -> None:
    """The backup is the file before the entry was added, also if the user had deleted an earlier entry by hand."""
    path = write(CURSOR.path, RICH["cursor"])
    install(CURSOR)
    path.write_text('{"mcpServers": {}}')
    install(CURSOR)
    remove(CURSOR)

    assert path.read_text() == '{"mcpServers": {}}'


def test_the_diff_shows_only_changed_rows() -> None:
    """The diff has no context, because neighbouring rows can contain keys."""
    write(CURSOR.path, RICH["cursor"].replace("~/a b.db", "SECRET"))
    rows = plan(CURSOR, SERVER).diff

    assert "SECRET" not in "\n".join(rows)
    assert {row[0] for row in rows} == {"+", "-"}
    assert any(json.dumps(SERVER.command, ensure_ascii=False) in row for row in rows)
