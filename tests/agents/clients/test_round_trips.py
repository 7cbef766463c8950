"""Properties of installation and removal, for generated files of each format."""

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from palaver.agents.clients import config_format, toml_text
from palaver.agents.clients.client_setup import apply, backup_of, plan, plan_removal
from palaver.agents.clients.client_table import Client, ServerEntry, find_client

from .config_samples import write

TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\u2028\u2029\ufeff\x85")
)
NAMES = TEXT.filter(lambda name: name not in {"", "palaver", "<<", "="})
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3), max_leaves=8
)
SERVERS = st.dictionaries(NAMES, st.dictionaries(NAMES, VALUES, max_size=3), max_size=3)
COMMENTS = ["", "", " ", "\n", "\t", "/* a */", '// "b": {\n', "/* , } */ "]
ENTRIES = st.builds(
    ServerEntry,
    TEXT.filter(bool).map(lambda name: f"/{name}"),
    st.just(("mcp",)),
    st.dictionaries(st.just("PALAVER_HOME"), TEXT, max_size=1),
)


@st.composite
def json_files(draw: st.DrawFn, section: str = "mcpServers") -> str:
    """Return JSON with comments, trailing commas, and any white space and line ends."""

    def gap() -> str:
        return draw(st.sampled_from(COMMENTS))

    def render(value: object, *, plain: bool) -> str:
        match value:
            case dict() if not plain:
                members = cast("dict[str, object]", value)
                rows = [
                    f"{gap()}{json.dumps(key)}{gap()}:{gap()}{render(each, plain=draw(st.booleans()))}{gap()}"
                    for key, each in members.items()
                ]
                trailing = "," if draw(st.booleans()) and rows else ""
                return "{" + ",".join(rows) + trailing + gap() + "}"
            case _:
                return json.dumps(
                    value, ensure_ascii=draw(st.booleans()), indent=draw(st.sampled_from([None, 2, "\t"]))
                )

    values: dict[str, Any] = draw(st.dictionaries(NAMES.filter(lambda name: name != section), VALUES, max_size=4))
    if draw(st.booleans()):
        values[section] = draw(SERVERS)
    text = gap() + render(values, plain=draw(st.booleans())) + draw(st.sampled_from(["", "\n", "\n// end\n"]))
    text = text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))
    return draw(st.sampled_from(["", "\ufeff"])) + text


@st.composite
def toml_files(draw: st.DrawFn) -> str:
    """Return TOML with comments, tables in any order, and any line ends."""
    keys = st.text("abcXYZ-_09", min_size=1, max_size=8).filter(lambda name: name not in {"palaver", "mcp_servers"})
    value = st.one_of(
        st.integers(-(2**53), 2**53).map(str),
        TEXT.map(lambda text: json.dumps(text, ensure_ascii=False)).filter(lambda text: "\x7f" not in text),
        st.sampled_from(["true", '["a", # b\n "c"]', "'''x\n[mcp_servers.palaver]\n'''", "{ a = 1 }", "1979-05-27"]),
    )
    rows = [draw(st.sampled_from(["", "# comment\n", "\n\n"]))]
    rows += [f"{key} = {draw(value)}  # why\n" for key in draw(st.lists(keys, unique=True, max_size=3))]
    tables = [f"t{name}" for name in draw(st.lists(keys, unique=True, max_size=3))]
    tables += [f"mcp_servers.{name}" for name in draw(st.lists(keys, unique=True, max_size=3))]
    for table in draw(st.permutations(tables)):
        rows += [draw(st.sampled_from(["", "\n", "# before\n"])), f"[{table}]\n"]
        rows += [f"{key} = {draw(value)}\n" for key in draw(st.lists(keys, unique=True, max_size=3))]
    rows.append(draw(st.sampled_from(["", "\n", "# end"])))
    return "".join(rows).replace("\n", draw(st.sampled_from(["\n", "\r\n"])))


GENERATED = {"cursor": json_files(), "codex": toml_files()}
READERS = {"json": config_format, "toml": toml_text}
generated = pytest.mark.parametrize("client", [find_client(name) for name in GENERATED], ids=lambda each: each.name)
examples = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def apply_again(client: Client, server: ServerEntry) -> str:
    change = plan(client, server)
    apply(change)
    return change.action


@generated
@examples
@given(data=st.data(), first=ENTRIES, second=ENTRIES)
def test_removal_restores_any_file(
    client: Client, data: st.DataObject, first: ServerEntry, second: ServerEntry
) -> None:
    """Any valid file keeps its other values, a second run changes nothing, and removal restores its bytes."""
    text = data.draw(GENERATED[client.name])
    form = READERS[client.format]
    path, before = write(client.path, text.encode()), form.read(text)

    assert apply_again(client, first) == "add"
    after = form.read(path.read_bytes().decode())
    added = after[client.section].pop("palaver")
    assert after == {**before, client.section: before.get(client.section) or {}}
    assert [added[client.shape.command], added.get(client.shape.env, {})] == [first.command, first.env]
    assert apply_again(client, first) == "keep"
    apply(plan_removal(client))
    assert path.read_bytes() == text.encode()
    assert not backup_of(path).exists()

    apply(plan(client, first))
    assert apply_again(client, second) == ("keep" if first == second else "update")
    apply(plan_removal(client))
    rest = form.read(path.read_bytes().decode())
    assert {**rest, client.section: rest.get(client.section) or {}} == {
        **before,
        client.section: before.get(client.section) or {},
    }


@examples
@given(text=json_files(), server=ENTRIES)
def test_json_without_a_backup_loses_only_the_entry(text: str, server: ServerEntry) -> None:
    """Dropping what was put restores a JSON text except for white space, also without the previous text."""
    values = config_format.read(text)
    place = ("mcpServers", "palaver") if values.get("mcpServers") else ("palaver",)
    changed = config_format.put(text, place, {"command": server.command})

    assert "".join(config_format.drop(changed, place).split()) == "".join((text if text.strip() else "{}").split())


@examples
@given(text=st.text(alphabet='{}[]:,"/*\\ \n\ta1\ufeff', max_size=40))
def test_no_text_breaks_the_json_editor(text: str) -> None:
    """Any text is either refused, or gets the entry and nothing else."""
    try:
        before = config_format.read(text)
        changed = config_format.put(text, ("mcpServers", "palaver"), {})
    except ValueError:
        return
    assert config_format.read(changed) == {**before, "mcpServers": {**before.get("mcpServers", {}), "palaver": {}}}


def test_the_generated_files_are_below_the_home(home: Path) -> None:
    """The clients' files are in the home of the test."""
    assert all(find_client(name).path.is_relative_to(home) for name in GENERATED)
