"""`palaver remember`, `recall`, `memories` and `context`: stored memories on the command line."""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from palaver.archiver.store import Store
from palaver.cli import main
from palaver.core.conversation import Origin, Session
from palaver.core.home import Home
from palaver.core.memory import Memory, MemoryRevision
from palaver.observe.archive import Archive
from palaver.observe.memory import MemoryCore

from .observe.llm.server import FakeProvider, Sent, message


def palaver(*arguments: str, code: int = 0) -> Result:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == code, result.output
    return result


def answer(*arguments: str) -> dict[str, Any]:
    """Return the JSON output of a command."""
    found: dict[str, Any] = json.loads(palaver(*arguments, "--json").stdout)
    return found


@pytest.fixture(autouse=True)
def core(home: Path) -> Iterator[MemoryCore]:
    """Return the memory core, opened as by another process."""
    with Archive(Home(home / "palaver")).memories as opened:
        yield opened


def test_contradictions_are_reported_with_their_judge() -> None:
    """The message names the judge and explains how to settle a contradiction. Duplicates are stored once."""
    assert palaver("remember", "The staging server listens on port 8443").stdout.startswith("Stored as mem_1 in global")
    output = palaver("remember", "The staging server listens on port 9000").stdout
    assert "The new memory contradicts mem_1" in output
    assert "judged by rules)" in output
    assert "To keep only one memory, run `palaver forget mem_1` (old) or `palaver forget mem_2` (new).\n" in output
    assert "Already stored as mem_2" in palaver("remember", "The staging server listens on port 9000").stdout
    assert (
        "mem_1 and mem_2 contradict each other. To forget one: palaver forget ID"
        in palaver("recall", "staging port").stdout
    )
    assert answer("recall", "staging port")["contradictions"] == [["mem_1", "mem_2"]]
    begins = palaver("context").stdout
    assert "(contradicts mem_1) The staging server listens on port 9000 [mem_2, " in begins
    assert "To forget the other" in begins

    replaced = palaver("remember", "The staging server no longer listens on port 9000, it was moved to port 80").stdout
    assert "To restore the old memory: palaver memories undo mem_" in replaced
    assert "Restored mem_2, which was superseded. It is active." in palaver("memories", "undo", "mem_2").stdout


def test_a_memory_is_edited_in_the_editor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, core: MemoryCore) -> None:
    """The text that the editor saves becomes the content, unchanged text changes nothing, and undo restores it."""
    palaver("remember", "Prefer tabs")
    script = tmp_path / "editor.py"
    script.write_text(
        "import pathlib, sys\nfile = pathlib.Path(sys.argv[1])\n"
        "file.write_text(file.read_text().replace('tabs', 'spaces'))\n"
    )
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} {script}")

    assert palaver("memories", "edit", "mem_1").stdout == "Edited mem_1: Prefer spaces\n"
    palaver("memories", "edit", "mem_1")
    assert [event.kind for event in core.history("mem_1")] == ["edited", "created"]
    assert "edited (content)\n    before: " in palaver("memories", "history", "mem_1").stdout
    palaver("memories", "undo", "mem_1")
    assert core.get("mem_1").memory.content == "Prefer tabs"


def test_undo_goes_back_step_by_step(core: MemoryCore) -> None:
    """Each undo reports its edit, and an undo without a remaining edit is an error."""
    palaver("remember", "Prefer tabs")
    for content in ("Prefer spaces", "Prefer four spaces"):
        core.revise("mem_1", MemoryRevision(content=content, origin=Origin.HUMAN))

    first = palaver("memories", "undo", "mem_1").stdout
    assert first == "Undid the last edit of mem_1 (content). Content: Prefer spaces (before: Prefer four spaces)\n"
    assert answer("memories", "undo", "mem_1")["undone"] == "content"
    assert core.get("mem_1").memory.content == "Prefer tabs"
    refused = palaver("memories", "undo", "mem_1", code=2).stderr
    assert "Nothing to undo: mem_1" in refused
    assert "palaver memories history mem_1" in refused

    core.revise("mem_1", MemoryRevision(content="Prefer two spaces", origin=Origin.HUMAN))
    palaver("forget", "mem_1")
    shown = [palaver(*words).stdout for words in (("memories", "list", "--all"), ("memories", "show", "mem_1"))]
    shown.append(palaver("memories", "history", "mem_1").stdout)
    assert ["archived" in each or "forgotten" not in each for each in shown] == [False] * 3
    refused = palaver("show", "mem_1", code=2).output
    assert "mem_1 no longer exists" in refused
    assert "Did you mean" not in refused
    assert "Memory not found: mem_1" in palaver("memories", "edit", "mem_1", code=2).stderr
    restored = palaver("memories", "undo", "mem_1").stdout
    assert "Restored mem_1, which was forgotten. It is active. Content: Prefer two spaces" in restored
    assert "Content: Prefer tabs" in palaver("memories", "undo", "mem_1").stdout
    assert palaver("memories", "history", "mem_1").stdout.count("undone") == 3
    assert "Memory not found: mem_9" in palaver("memories", "edit", "mem_9", code=2).stderr


def test_the_graph_has_two_formats() -> None:
    """The graph is printed as Mermaid or as JSON."""
    for port in (8443, 9000):
        palaver("remember", f'The "staging" server <b>listens</b> on port {port}')

    assert palaver("memories", "graph", "mem_1").stdout.startswith("```mermaid\ngraph TD\n")
    assert [each["relation"] for each in answer("memories", "graph", "mem_1")["edges"]] == ["contradicts"]


def test_an_uncertain_replacement_is_shown_as_proposed() -> None:
    """The message contains the older, unchanged memory and explains how to accept or reject the replacement."""
    palaver("remember", "Builds must finish within 10 minutes", "--type", "fact")
    output = palaver(
        "remember", "Builds must finish within 15 minutes, the limit of 10 was raised", "--type", "fact"
    ).stdout

    assert "The new memory may replace mem_1: Builds must finish within 10 minutes" in output
    assert "The new memory replaces" not in output
    assert "To keep only one memory, run `palaver forget mem_1" in output
    assert {each["id"]: each["state"] for each in answer("memories", "list")["memories"]} == {
        "mem_1": "active",
        "mem_2": "active",
    }


def test_a_context_fits_its_budget(core: MemoryCore) -> None:
    """A context starts with golden rules, and a budget that is too small is reported."""
    assert palaver("context").output == ""
    palaver("remember", "Chose FastAPI", "--type", "decision", "--project", ".")
    palaver("remember", "Chose Django", "--type", "decision", "--project", "blog")
    palaver("remember", "Always use type hints", "--importance", "0.9")
    for _ in range(6):
        core.feedback.outcome("mem_3", success=True)
    core.feedback.approve("mem_3")

    output = palaver("context").stdout
    assert output.index("Golden Rules") < output.index("Always use type hints") < output.index("Chose FastAPI")
    assert "Django" not in output
    small = palaver("context", "--budget", "60")
    assert (small.stdout, small.stderr) == ("", "No line fits into 60 tokens. Use a larger --budget.\n")
    counted = answer("context")
    assert (counted["memory_count"], counted["golden_rule_count"]) == (2, 1)
    assert counted["token_estimate"] <= 1500


def test_pinned_and_protected_memories_are_forgotten_only_with_force(core: MemoryCore) -> None:
    """Pinned and protected memories require `--force`. Other memories are forgotten and can be restored."""
    palaver("remember", "Use tabs", "--pin")
    palaver("remember", "Deploys go out on Friday", "--type", "decision")

    done = json.loads(palaver("forget", "mem_1", "mem_2", "--json", code=1).stdout)
    assert done == {"forgotten": ["mem_2"], "protected": ["mem_1"]}
    assert palaver("recall", "tabs").stdout.count("mem_1") == 1
    assert answer("forget", "mem_1", "--force")["forgotten"] == ["mem_1"]
    assert answer("memories", "list")["total"] == 0
    assert answer("memories", "list", "--all")["total"] == 2
    assert core.undo(["mem_2"])[0].stored.state == "active"


def test_a_model_judges_only_if_the_user_configured_it(
    home: Path, provider: FakeProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A model judges only with `llm_judge`, a key and a budget. `palaver stats` shows its cost."""
    judged = {"pair": 1, "verdict": "contradicts", "reason": "Another order", "certainty": 0.9}
    provider.default = lambda _: Sent(body=message(json.dumps({"judgements": [judged]})))
    settings = f'llm_url = "{provider.url}"\n'
    config = Home(home / "palaver").config
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    tried = ("", "budget_month = 1.0\n", "llm_judge = true\n")
    for number, more in enumerate(tried):
        config.write_text(settings + more)
        palaver("remember", f"Group imports of part {number} alphabetically in Python")
        palaver("remember", f"Group imports of part {number} by length in Python")
    assert provider.calls == []

    config.write_text(settings + tried[1] + tried[2])
    palaver("remember", "Sort the imports of the parser alphabetically in Python")
    assert (
        "judged by claude-haiku-5-5)"
        in palaver("remember", "Sort the imports of the parser by length in Python").stdout
    )
    assert "claude-haiku-5-5, judging: " in palaver("stats").stdout


def test_memories_are_read_without_a_language_model() -> None:
    """Without `llm_judge`, a command for memories imports no provider, and JSON output needs no templates."""
    program = "import sys; from palaver.cli import main\n"
    program += "main(['memories', 'list', '--json'], standalone_mode=False)\n"
    program += "print(*sys.modules, file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)

    assert json.loads(done.stdout)["total"] == 0
    assert {"jinja2", "palaver.observe.llm", "pydantic"}.intersection(done.stderr.split()) == set()


@pytest.mark.usefixtures("core")
def test_recall_without_results_gives_a_reason() -> None:
    """The message says whether any memory is stored, and suggests a next step."""
    assert "No memories are stored yet. Store one with `palaver remember TEXT`." in palaver("recall", "kettles").stdout
    palaver("remember", "Use tabs in Go", "--type", "decision")

    output = palaver("recall", "quantum", "llamas").stdout
    assert output.startswith("No memories found.\n1 memory searched, but none matches. ")
    assert output.endswith("Try other words. List all with `palaver memories list`.\n")
    asked = answer("recall", "quantum", "llamas")
    assert (asked["memories"], asked["total"]) == ([], 0)
    narrowed = palaver("memories", "list", "--type", "fact").stdout
    assert "None of 1 memory matches these options. Remove an option." in narrowed
    palaver("remember", "Prefer plain sqlite3 over an ORM")
    near = palaver("recall", "how to store things in tables").stdout
    assert re.match(r"No memory is relevant enough. The nearest:\n<recalled-\d+>\nmem_", near)


@pytest.mark.usefixtures("core")
def test_recall_counts_only_memories_that_satisfy_the_options() -> None:
    """Without results, the message gives the number of memories that satisfy the options, including zero."""
    for text, *options in (
        ("Deploy to Kubernetes in Frankfurt", "--tag", "operations"),
        ("Indent by four blanks", "--tag", "style"),
        ("Sort imports", "--tag", "style"),
    ):
        palaver("remember", text, *options)
    asked = ("recall", "kubernetes frankfurt")

    assert "mem_1" in palaver(*asked).stdout
    assert palaver(*asked, "--tag", "style").stdout.endswith(
        "2 memories searched, but none matches. Try other words, or remove an option. "
        "List all with `palaver memories list`.\n"
    )
    assert "None of 3 memories matches these options" in palaver(*asked, "--tag", "none").stdout
    assert "3 memories searched, but none matches. Try other words. List" in palaver("recall", "zxqv gnarl").stdout


@pytest.mark.parametrize(
    ("editor", "reason"),
    [
        ("no-such-editor-here", "no-such-editor-here"),
        (f"{sys.executable} -c 'raise SystemExit(3)'", "Editing failed"),
        (f"{sys.executable} -c 'import sys; open(sys.argv[1], \"wb\").write(bytes([255]))'", "is not UTF-8"),
    ],
)
def test_an_editor_that_fails_changes_nothing(
    editor: str, reason: str, monkeypatch: pytest.MonkeyPatch, core: MemoryCore
) -> None:
    """An editor that is missing or fails, or leaves invalid text, causes an error with a remedy."""
    palaver("remember", "Prefer tabs")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", editor)

    problem, hint = palaver("memories", "edit", "mem_1", code=1).stderr.splitlines()
    assert problem.startswith("palaver: The editor failed: ")
    assert reason in problem
    assert (
        hint == "Nothing was changed. Try another editor, for example with VISUAL=nano, which has priority over EDITOR."
    )
    assert core.get("mem_1").memory.content == "Prefer tabs"


def test_an_edit_without_a_terminal_is_an_error(monkeypatch: pytest.MonkeyPatch, core: MemoryCore) -> None:
    """Without a terminal and an editor, an edit fails at once."""
    palaver("remember", "Prefer tabs")
    for name in ("VISUAL", "EDITOR"):
        monkeypatch.delenv(name, raising=False)

    output = palaver("memories", "edit", "mem_1", code=1).stderr.splitlines()

    assert output == [
        "palaver: The editor requires a terminal",
        "Nothing was changed. Run the command at a terminal, or set EDITOR to a program that needs no terminal.",
    ]
    assert core.get("mem_1").memory.content == "Prefer tabs"


def test_an_empty_text_in_the_editor_changes_nothing(monkeypatch: pytest.MonkeyPatch, core: MemoryCore) -> None:
    """Empty or unchanged text is not saved, and for empty text the message explains how to forget the memory."""
    palaver("remember", "Prefer tabs")
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} -c 'import sys; open(sys.argv[1], \"w\").close()'")
    output = palaver("memories", "edit", "mem_1").stdout
    assert output == "mem_1 is unchanged, because the text was empty. To forget it: palaver forget mem_1\n"

    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} -c pass")
    assert palaver("memories", "edit", "mem_1").stdout == "mem_1 is unchanged.\n"
    assert [event.kind for event in core.history("mem_1")] == ["created"]


def test_the_context_of_an_existing_folder_is_never_an_error(tmp_path: Path, home: Path) -> None:
    """Archived projects, projects with memories and existing folders are known, because hooks start anywhere."""
    with Store.open(home / "palaver" / "palaver.db") as store, store.transaction():
        store.sessions.save(Session("codex", "1", project="seed-library"))
    palaver("remember", "Prefer tabs", "--project", "tide-clock")
    for known in ("seed-library", "tide-clock", str(tmp_path), "."):
        assert palaver("context", "--project", known).stderr == ""


def test_a_missing_context_has_a_reason_on_a_terminal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a context, stderr contains the reason and the next step on a terminal, and nothing in a hook."""
    palaver("remember", "Prefer tabs", "--project", "shop")
    monkeypatch.chdir(tmp_path)
    unknown = ("context",)
    monkeypatch.setenv("COLUMNS", "200")
    results = [palaver(*unknown)]

    def at_a_terminal(_stream: object) -> bool:
        return True

    monkeypatch.setattr(f"{CliRunner.__module__}._NamedTextIOWrapper.isatty", at_a_terminal)
    results.append(palaver(*unknown))
    palaver("remember", "The kettle leaks", "--type", "fact", "--project", "kitchen")
    results.append(palaver("context", "--project", "kitchen"))
    palaver("remember", "Ask before a release", "--type", "decision")
    everywhere = palaver(*unknown)
    assert "Ask before a release" in everywhere.stdout
    assert everywhere.stderr == ""
    monkeypatch.setenv("PALAVER_HOME", "/no/such/home")
    results.append(palaver(*unknown))

    assert [each.stdout for each in results] == ["", "", "", ""]
    assert [each.stderr.splitlines() for each in results] == [
        [],
        [
            f"No memories or trusted observations for project {tmp_path.name}.",
            "Namespaces with memories: project:shop. To store one, run `palaver remember TEXT`.",
        ],
        [
            "No memory in project kitchen is both trusted and relevant for a new session.",
            "Sessions start with rules, preferences, decisions and patterns. `palaver recall WORDS` finds others.",
            "Memory files of a repository are omitted until you run `palaver mnemonics allow`.",
        ],
        ["No archive at /no/such/home", "Run `palaver up` to create one."],
    ]


def test_memories_cannot_control_the_terminal() -> None:
    """A memory is printed on one line without control characters."""
    text = "The mail server listens \x1b[31mon port 25\nand on port 587"
    palaver("remember", text)

    for result in (palaver("remember", text), palaver("remember", "The mail server listens on port 26")):
        assert "mem_1" in result.stdout
        assert "\x1b" not in result.stdout
        assert [row for row in result.stdout.splitlines() if row.startswith("and on")] == []


def test_ids_ignore_capitals_and_zeros() -> None:
    """Capitals and leading zeros do not change an ID."""
    palaver("remember", "The harbour closes at nine", "--pin")
    assert "harbour" in palaver("memories", "show", "MEM-001").output
    assert "Not forgotten" in palaver("forget", "Mem_1", code=1).output
    assert "Forgotten: mem_1." in palaver("forget", "MEM-1", "--force").output


def test_an_unknown_type_is_an_error() -> None:
    """An unknown type is an error that lists the known types, and types ignore capitals."""
    refused = palaver("remember", "The harbour closes at nine", "--type", "opinion", code=2).stderr
    assert refused.startswith("palaver: Invalid memory type: opinion\nUse one of: preference, decision, pattern, ")
    assert answer("remember", "The harbour closes at nine", "--type", "Decision")["memory"]["type"] == "decision"
    for command in (("recall", "harbour"), ("memories", "list")):
        assert "opinion" in palaver(*command, "--type", "opinion", code=2).stderr
        assert "nine" in palaver(*command, "--type", "decision").stdout


def test_a_type_of_a_stored_memory_is_known(core: MemoryCore) -> None:
    """The type of a stored memory is accepted in filters and for new memories."""
    core.remember(Memory("The tide comes twice a day", "almanac"))
    assert "tide" in palaver("memories", "list", "--type", "almanac").stdout
    assert answer("remember", "The moon is new", "--type", "almanac")["memory"]["type"] == "almanac"


def test_memories_forgotten_together_are_restored_together() -> None:
    """The printed undo command restores all memories of a deletion or, after an error, none of them."""
    for text in ("Use tabs in Go", "Serve oolong tea", "The harbour closes at nine"):
        palaver("remember", text)
    command = palaver("forget", "mem_1", "mem_2").stdout.strip().partition("palaver ")[2].split()
    assert command == ["memories", "undo", "mem_1", "mem_2"]

    assert "Nothing to undo: mem_3" in palaver(*command, "mem_3", code=2).stderr
    assert answer("memories", "list")["total"] == 1
    assert [each["undone"] for each in answer(*command)["memories"]] == ["restored", "restored"]
    assert answer("memories", "list")["total"] == 3


def test_redacted_secrets_are_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Redacted secrets are not reported again by an edit without changes or by an undo."""
    taken = "Redacted secrets"
    assert taken in palaver("remember", "The key is ghp_" + "a1B2c3D4e5F6" * 3).stdout
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setenv("EDITOR", f"{sys.executable} -c pass")
    assert palaver("memories", "edit", "mem_1").stdout == "mem_1 is unchanged.\n"
    palaver("forget", "mem_1")
    assert taken not in palaver("memories", "undo", "mem_1").stdout
    add = "import sys; open(sys.argv[1], 'a').write(' and ghp_' + 'Z9y8X7w6V5u4' * 3)"
    monkeypatch.setenv("EDITOR", f'{sys.executable} -c "{add}"')
    assert taken in palaver("memories", "edit", "mem_1").stdout


@pytest.mark.parametrize(
    ("given", "message"),
    [({"input": "{}"}, ""), ({"stdin": subprocess.DEVNULL}, "No memories or trusted observations for project ")],
    ids=["hook", "script"],
)
def test_a_hook_is_distinguished_from_a_script(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    """A hook without results prints nothing, and a script without input gets the reason."""
    palaver("remember", "Prefer tabs", "--project", "shop")
    command = [sys.executable, "-m", "palaver", "context"]
    ran = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path, **given)
    assert ran.stdout == ""
    assert ran.stderr[: len(message) or None] == message
