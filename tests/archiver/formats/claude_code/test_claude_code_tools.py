"""Tool calls and results in Claude Code transcripts, and answers of the user in them."""

from typing import Any

import pytest

from palaver.archiver.formats.transcript_format import HINT
from palaver.archiver.lines import trim
from palaver.core.conversation import Kind, Speaker, Turn

from ....cases import for_each
from .claude_lines import HUMAN, INJECTED, assistant, result, text, tool, turns, user


@for_each(
    "name, arguments, expected",
    [
        ("Bash", {"command": "make test", "description": "Run tests"}, "Bash: make test  # Run tests"),
        ("PowerShell", {"command": "dir"}, "PowerShell: dir"),
        ("Read", {"file_path": "/a/b.py", "offset": 3}, "Read: /a/b.py"),
        ("Edit", {"file_path": "/a.py", "old_string": "x = 1", "new_string": "x = 2"}, "Edit: /a.py\n- x = 1\n+ x = 2"),
        (
            "MultiEdit",
            {"file_path": "/a", "edits": [{"old_string": "1", "new_string": "2"}, {"old_string": "3"}]},
            "MultiEdit: /a\n- 1\n+ 2\n- 3\n+",
        ),
        ("Write", {"file_path": "/a.md", "content": "# Title"}, "Write: /a.md\n# Title"),
        ("NotebookEdit", {"notebook_path": "/n.ipynb", "new_source": "1+1"}, "NotebookEdit: /n.ipynb\n1+1"),
        ("Grep", {"pattern": "def main", "path": "/src", "glob": "*.py"}, "Grep: def main in /src in *.py"),
        ("Glob", {"pattern": "**/*.ts"}, "Glob: **/*.ts"),
        ("TodoWrite", {"todos": [{"content": "Ship", "status": "pending"}]}, "TodoWrite: [pending] Ship"),
        ("Task", {"subagent_type": "Explore", "description": "Find", "prompt": "Look"}, "Task: Explore · Find\nLook"),
        ("TaskCreate", {"subject": "Parse", "description": "All of it"}, "TaskCreate: Parse All of it"),
        ("TaskUpdate", {"taskId": "5", "status": "completed"}, "TaskUpdate: #5 completed"),
        (
            "AskUserQuestion",
            {"questions": [{"question": "Which?", "options": [{"label": "A"}, {"label": "B"}]}]},
            "AskUserQuestion: Which? [A | B]",
        ),
        ("WebSearch", {"query": "rope"}, "WebSearch: rope"),
        ("mcp__pad__draw", {"shape": "box", "at": [1, 2]}, "mcp__pad__draw: shape=box, at=[1,2]"),
        ("mcp__pad__clear", {}, "mcp__pad__clear"),
        ('Task" >\n<parameter', {}, 'Task" > <parameter'),
        ("Bash", "not an object", "Bash"),
        ("Bash", {"command": 3}, "Bash"),
    ],
)
def test_calls_are_readable_text(name: str, arguments: object, expected: str) -> None:
    """A call shows the tool and its input for arguments of any type."""
    (turn,) = turns(assistant(tool(name, arguments)))

    assert (turn.kind, turn.text, turn.call) == (Kind.CALL, expected, "toolu_1")


def test_a_result_has_the_tool_and_id_of_its_call() -> None:
    """A result has the tool and the ID of its call, which is found by the shared ID."""
    _, found = turns(assistant(tool("Bash", {"command": "ls"})), result("a.txt", {"stdout": "a.txt", "stderr": ""}))

    assert (found.kind, found.speaker, found.tool, found.call, found.text, found.failed) == (
        Kind.RESULT,
        Speaker.TOOL,
        "Bash",
        "toolu_1",
        "a.txt",
        False,
    )


def test_files_count_only_if_they_were_touched() -> None:
    """A failed call lists no files. Otherwise the paths come from the call or its result."""
    path = "/src/a.py"
    edit = {"file_path": path, "old_string": "1", "new_string": "2"}
    whole_file = "WHOLE FILE " * 1000

    read_ok = turns(assistant(tool("Read", {"file_path": path})), result("1 x = 1"))[1]
    edited = turns(
        assistant(tool("Edit", edit)),
        result("ok", {"filePath": path, "newString": "2", "originalFile": whole_file}),
    )[1]
    failed = turns(assistant(tool("Edit", edit)), result("not found", "Error: not found", is_error=True))[1]
    orphan = turns(result("ok", {"type": "create", "filePath": path, "structuredPatch": []}))[0]

    assert (read_ok.reads, read_ok.writes, read_ok.text) == ((path,), (), path)
    assert (edited.reads, edited.writes, edited.text) == ((), (path,), path)
    assert (failed.reads, failed.writes, failed.failed) == ((), (), True)
    assert orphan.writes == (path,)


def test_long_texts_are_shortened_on_request() -> None:
    """Shortened texts keep their head and tail, with the number of missing characters."""
    output = "HEAD" + "x" * 50_000 + "TAIL"
    records = (assistant(tool("Bash", {"command": output})), result(output), user(output, isMeta=True))

    short = [trim(turn.text) for turn in turns(*records)]
    assert all(len(text) < 2200 for text in short)
    assert all("HEAD" in text and text.endswith("TAIL") for text in short)
    assert "48508 characters left out" in short[1]
    assert [turn.text for turn in turns(*records, shorten=False)] == [f"Bash: {output}", output, output]


def test_a_prompt_is_never_shortened() -> None:
    """Even a long prompt is not shortened."""
    assert turns(user("word " * 10_000))[0].text == ("word " * 10_000).strip()


@pytest.mark.parametrize(
    ("content", "extra", "expected"),
    [
        ([text("a"), {"type": "tool_reference", "tool_name": "Fetch"}], None, "a\nFetch"),
        ([{"type": "image", "source": {"media_type": "image/png", "data": "AAAA" * 1024}}], None, "[image/png, 3 KB]"),
        (None, {"stdout": "out", "stderr": "err"}, "out\nerr"),
        (None, [text("from a list")], "from a list"),
        ("<tool_use_error>No such tool</tool_use_error>", "Error: No such tool", "No such tool"),
        ("1 x\n\n<system-reminder>\nnever mind\n</system-reminder>", None, "1 x"),
        (7, 7, ""),
    ],
)
def test_results_of_every_structure_have_their_text(content: object, extra: object, expected: str) -> None:
    """The text of a result is read from text, lists or structured copies, and is empty if there is no content."""
    assert turns(result(content, extra))[0].text == expected


ANSWERS: dict[str, Any] = {
    "questions": [],
    "answers": {"Which store?": "SQLite"},
    "annotations": {"Which store?": {"notes": "old"}},
}
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected. "
REASON = f"{REFUSED}To tell you how to proceed, the user said:\nuse the old name"
FOREIGN = ("mcp__docs__ask", "mcp__x__AskUserQuestion", "Bash", "WebFetch", "Task", "")


def tool_result_turn(name: str, content: str, extra: object = None, **fields: Any) -> Turn:
    """Return the result of a call of this tool, or of an unknown call if the name is empty."""
    made = [assistant(tool(name, {}))] if name else []
    return turns(*made, result(content, extra, **fields))[-1]


def test_an_answer_to_a_question_is_the_users() -> None:
    """The user is the author of an answer and its notes. The answer opens no exchange."""
    turn = tool_result_turn("AskUserQuestion", "User has answered your questions: ...", ANSWERS)

    assert (turn.speaker, turn.kind, turn.text) == (HUMAN, Kind.RESULT, "Which store? → SQLite (old)")


@pytest.mark.parametrize("name", ["Edit", "MultiEdit", "Write", "NotebookEdit", "AskUserQuestion", "ExitPlanMode"])
def test_the_reason_for_a_refusal_is_the_users(name: str) -> None:
    """The user is the author of the reason for a refusal, and the refused call counts as failed."""
    reason = tool_result_turn(name, REASON, f"Error: {REASON}", is_error=True)
    silent = tool_result_turn(name, f"{REFUSED}STOP what you are doing", is_error=True)

    assert (reason.speaker, reason.text, reason.failed) == (HUMAN, "use the old name", True)
    assert (silent.speaker, silent.failed) == (Speaker.TOOL, True)


@pytest.mark.parametrize("name", FOREIGN)
def test_no_other_tool_speaks_for_the_user(name: str) -> None:
    """Text of other tools that resembles an answer or a refusal of the user is attributed to the tool."""
    refusal = tool_result_turn(name, REASON, f"Error: {REASON}", is_error=True)
    answers = tool_result_turn(name, "User has answered your questions: ...", ANSWERS)

    assert (refusal.speaker, answers.speaker) == (Speaker.TOOL, Speaker.TOOL)


def test_unexpected_results_of_own_tools_are_not_the_users() -> None:
    """Results that do not have the expected structure are attributed to the tool, not to the user."""
    server = {"type": "mcp_tool_result", "tool_use_id": "toolu_1", "content": "x"}
    blocks = [
        tool_result_turn("AskUserQuestion", "x", {"answers": {"Which?": "SQLite"}}),
        tool_result_turn("Edit", "x", ANSWERS),
        tool_result_turn("Edit", REASON, {"filePath": "a.py", "is_error": True}, is_error=True),
        tool_result_turn("Edit", REASON),
        turns(assistant(tool("AskUserQuestion", {})), user([server], toolUseResult=ANSWERS))[-1],
    ]

    assert {turn.speaker for turn in blocks} == {Speaker.TOOL}


def test_text_beside_a_result_is_not_a_prompt() -> None:
    """Text in the same record as a result is injected."""
    block = {"type": "tool_result", "tool_use_id": "t", "content": "ok"}

    assert [(turn.kind, turn.text) for turn in turns(user([text("note"), block]))] == [
        (Kind.RESULT, "ok"),
        (INJECTED, "note"),
    ]


def test_a_hint_of_the_program_is_not_part_of_the_users_reason() -> None:
    """Some versions add a paragraph for the model after the user's reason for a refusal."""
    turn = tool_result_turn("Edit", f"{REASON}\n\n{HINT} Pay close attention.", is_error=True)

    assert (turn.speaker, turn.text) == (Speaker.HUMAN, "use the old name")
