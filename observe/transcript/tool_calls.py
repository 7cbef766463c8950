"""Tool calls in one line: the tool, what it applies to, and whether it succeeded."""

import re
from typing import Final, NamedTuple

import orjson

from ...archiver.lines import one_line
from ...core.conversation import Speaker, Turn
from ...core.transcript_page import Call, Outcome
from ..rules.exchange_analysis import is_refusal
from ..rules.shell_commands import SHELLS, Segment, command_segments, without_messages

EDIT, READ, SEARCH, SHELL, COMMIT, WEB, SUBAGENT, QUESTION, PLAN, WAIT = (
    "edit", "read", "search", "shell", "commit", "web", "subagent", "question", "plan", "wait",
)  # fmt: skip
"""Kinds of calls."""
_SUBJECT: Final = 160
"""Maximum characters of the subject of a call."""
_COMMAND: Final = 600
"""Maximum characters of a command that are analysed."""
_KINDS: Final = {
    name: kind
    for kind, names in {
        EDIT: """apply_patch create create_file delete_file edit edit_file edit_notebook insert multi_edit multiedit
            notebookedit replace replace_file_content search_replace str_replace str_replace_editor strreplacefile
            write write_file write_to_file writefile""",
        READ: "notebookread open_file read read_file read_many_files readfile view view_file view_image",
        SEARCH: """codebase_search file_search find find_files glob glob_file_search grep grep_search list_dir
            list_directory ls rg search search_file_content search_files toolsearch""",
        WEB: "fetch fetch_url google_web_search web_fetch web_search webfetch websearch",
        SUBAGENT: "agent dispatch_agent runsubagent spawn_agent subagent task",
        PLAN: "todo_write todowrite update_plan write_todos",
        QUESTION: "askuserquestion ask_user exitplanmode request_user_input",
    }.items()
    for name in names.split()
}
_FINDERS: Final = frozenset("fd find grep ls rg tree".split())
_UNNAMED_SHELLS: Final = SHELLS - {"bash", "powershell"}
_CHECKS: Final = {"test": "tests", "lint": "lint", "type check": "type check", "build": "build", "format": "format"}


class _OutputSign(NamedTuple):
    """Sign in the output of a check. Most output has none of its words, which are searched before the pattern."""

    words: tuple[str, ...]
    pattern: re.Pattern[str]

    def is_in(self, output: str) -> bool:
        """Return whether an output has the sign."""
        return any(word in output for word in self.words) and self.pattern.search(output) is not None


_FAILURES: Final = _OutputSign(
    ("fail", "FAIL", "make: ***", "exit code"),
    re.compile(
        r"\b[1-9]\d* (?:tests? )?(?:fail|failed|failing|failures)\b|^(?:FAILED|FAIL)\b|^--- FAIL|^make: \*\*\*"
        r"|\bError: Process completed with exit code [1-9]",
        re.MULTILINE,
    ),
)
"""Sign of a check that failed. The exit status is that of a filter if the output went through one."""
_LISTING: Final = frozenset("--co --collect-only --list --list-tests --listtests --no-run -list".split())
"""Options with which a test program only lists or builds the tests, in lower case."""
_NONE_RAN: Final = _OutputSign(
    ("no test", "0 test", "0 passed", "0 items"),
    re.compile(
        r"\bno tests? (?:found|ran|run|were|to run|collected|files?\b)|\b(?:ran |running )?0 tests?\b(?! failed)"
        r"|\b0 passed|\bcollected 0 items"
    ),
)
"""Sign, in lower case, that no test ran."""
_NOT_RUN: Final = _OutputSign(
    ("subcommand", "not found", "missing script", "not recognized"),
    re.compile(
        r"\b(?:unrecognized subcommand|command not found|missing script|script not found)\b"
        r"|not recognized as an internal"
    ),
)
"""Sign, in lower case, of a shell that did not find a program, or of a program that did not find a script."""
_SOME_PASSED: Final = _OutputSign(
    ("pass", "PASS", "ok ", "ok\t", "ok\n"),
    re.compile(r"\b[1-9]\d* (?:tests? )?pass(?:ed|ing)?\b|\bpass [1-9]|^ok\s|^(?:--- )?PASS\b", re.MULTILINE),
)
_SCRIPTED_COMMAND: Final = re.compile(
    r"""\btools\.(?:exec_command|shell\w*)\(\s*\{(?:[^{}]*?[{,\s])??["']?(?:cmd|command)["']?\s*:\s*"""
    r"""(?P<text>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`(?:[^`\\]|\\.)*`)"""
)
"""Pattern for a command in a script of Codex, which calls its tools: `tools.exec_command({"cmd":"make test"})`."""
_POLL: Final = re.compile(
    r"""(?!.*\bchars["']?\s*[:=]\s*["'`]?[^\s"'`,}])(?:\Z|.*\bsession_id\b|.*\btools\.write_stdin\()""", re.DOTALL
)
"""Pattern for the input of `write_stdin` that types nothing, and so only waits for output."""
_PURPOSE: Final = re.compile(r"  # [^\n]*\Z")
_PATH: Final = re.compile(
    r"\b(?:file_path|filePath|absolute_path|target_file|TargetFile|path)=([^\n]+?)(?:, \w+=|\n|\Z)"
)
_PATCHED: Final = re.compile(r"^\*\*\* (?:Add|Update|Delete) File: (.+?)\s*$", re.MULTILINE)
_FOLDER: Final = re.compile(r"cd (?:\"[^\"]+\"|'[^']+'|\S+) && (?=\S)")
_STATE: Final = re.compile(r"^\[(\w+)\] ", re.MULTILINE)
_DONE: Final = frozenset({"completed", "done"})


def describe_call(call: Turn, position: int, result: Turn | None, cwd: str) -> Call:
    """Return a call in one line. `position` is its position among the turns of its line.

    Paths below the working folder `cwd` are relative to it.
    """
    kind, body = _kind_and_body(call)
    writes, reads = (result.writes, result.reads) if result else ((), ())
    if writes and kind != SUBAGENT:
        kind = EDIT
    segments = tuple[Segment, ...]()
    if kind == SHELL or call.speaker is Speaker.HUMAN:
        kind, command = SHELL, _PURPOSE.sub("", body)[:_COMMAND]
        # The text of a here-document is no command.
        segments = command_segments(without_messages(command))[1] if "<<" not in command else ()
        kind, subject = _kind_of(segments), _first_line(_FOLDER.sub("", command.removeprefix("! "), count=1))
    elif kind == EDIT:
        writes = writes or tuple(_PATCHED.findall(body)) or _paths_in(body)
        subject = ", ".join(relative(path, cwd) for path in writes) or _first_line(body)
    elif kind == READ:
        subject = ", ".join(relative(path, cwd) for path in reads or _paths_in(body)) or _first_line(body)
    elif kind == WAIT:
        subject = "waited for output"
    elif kind == PLAN:
        subject = _progress(body) or one_line(body)
    else:
        subject = one_line(body.partition("\n")[0] if kind == SUBAGENT else body)
    checked = next((check for segment in segments if (check := _check_of(segment))), "")
    if checked and result is not None and not _is_proven(checked, result.text, is_filtered="|" in body):
        checked = ""
    outcome = _outcome(result, checked)
    failed = result is not None and outcome is Outcome.FAILED
    return Call(
        line=call.line,
        position=position,
        tool=_label(call, kind),
        subject=one_line(subject, _SUBJECT),
        kind=kind,
        paths=tuple(relative(path, cwd) for path in writes) if kind == EDIT else (),
        outcome=outcome,
        checked=checked,
        result_line=result.line if result else None,
        size=len(result.text) if result else 0,
        reason=one_line(result.text.partition("\n")[0], _SUBJECT) if result and failed else "",
        seconds=seconds_between(call, result),
    )


def _kind_and_body(call: Turn) -> tuple[str, str]:
    """Return the kind and the input of a call. A script of Codex that runs commands counts as these commands."""
    body, tool = call.text.removeprefix(call.tool).removeprefix(": "), call.tool.lower()
    if tool == "exec" and (commands := [_unquoted(match["text"]) for match in _SCRIPTED_COMMAND.finditer(body)]):
        return SHELL, "\n".join(commands)
    types = tool == "write_stdin" or (tool == "exec" and "tools.write_stdin(" in body)
    return (WAIT if types and _POLL.match(body) else kind_of_tool(tool)), body


def _unquoted(literal: str) -> str:
    """Return the text of a string of JavaScript."""
    try:
        return str(orjson.loads(literal))
    except orjson.JSONDecodeError:
        return re.sub(r"\\(.)", r"\1", literal[1:-1].replace("\\n", "\n"))


def _label(call: Turn, kind: str) -> str:
    if call.speaker is Speaker.HUMAN:
        return "You ran"
    if kind == QUESTION:
        return "Question"
    is_script = call.tool.lower() in {"exec", "write_stdin"} and kind
    return "Shell" if is_script else tool_label(call.tool)


def kind_of_tool(tool: str) -> str:
    """Return the kind of a tool, or an empty string for an unknown tool."""
    name = tool.lower()
    return _KINDS.get(name, SHELL if name in SHELLS else "")


def late_result(result: Turn, position: int) -> Call:
    """Return a result whose call is in an earlier exchange."""
    label = tool_label(result.tool) if result.tool else "Result"
    outcome = _outcome(result, "")
    return Call(
        result.line, position, label, "result of an earlier call", outcome=outcome, result_line=result.line,
        size=len(result.text),
    )  # fmt: skip


def tool_label(tool: str) -> str:
    """Return the name of a tool as a label: `github get_issue` for `mcp__github__get_issue`."""
    if tool.startswith("mcp__"):
        return " ".join(filter(None, tool.removeprefix("mcp__").split("__")))
    if tool.lower() in _UNNAMED_SHELLS:
        return "Shell"
    return tool.replace("_", " ").capitalize() if tool.islower() else tool or "Tool"


def _progress(body: str) -> str:
    """Return how many steps of a plan are done. A plan has one line a step, with its state in brackets."""
    states = _STATE.findall(body)
    return f"{sum(state in _DONE for state in states)} of {len(states)} done" if states else ""


def relative(path: str, cwd: str) -> str:
    """Return a path relative to the working folder if it is below this folder."""
    folder = cwd.rstrip("/\\")
    if (
        folder
        and path[: len(folder)].casefold() == folder.casefold()
        and path[len(folder) : len(folder) + 1] in {"/", "\\"}
    ):
        return path[len(folder) + 1 :]
    return path


def seconds_between(first: Turn, last: Turn | None) -> float | None:
    """Return the time between two turns in seconds, or None if a time is unknown."""
    if last is None or first.at is None or last.at is None:
        return None
    return max(0, last.at - first.at) / 1000


def _kind_of(segments: tuple[Segment, ...]) -> str:
    """Return the kind of a shell command. A command that only shows files is a read or a search."""
    if any(segment.text.startswith("git commit") for segment in segments):
        return COMMIT
    if segments and all(segment.is_reader for segment in segments):
        return SEARCH if segments[0].program in _FINDERS else READ
    return SHELL


def _check_of(segment: Segment) -> str:
    """Return the name of the check that a command runs, or an empty string. Listing tests is no check."""
    lists = segment.task == "test" and not _LISTING.isdisjoint(map(str.lower, segment.words))
    return "" if lists else _CHECKS.get(segment.task, "")


def _is_proven(check: str, output: str, *, is_filtered: bool) -> bool:
    """Return whether the output of a check leaves no doubt that it ran.

    Of output that went through a filter, the exit status is that of the filter, so the output must state a result.
    """
    if _NOT_RUN.is_in(output.lower()):
        return False
    if _FAILURES.is_in(output) or _SOME_PASSED.is_in(output):
        return True
    return not is_filtered and not (check == _CHECKS["test"] and _NONE_RAN.is_in(output.lower()))


def _outcome(result: Turn | None, check: str) -> Outcome:
    """Return the outcome of a call. The user refused it if a user's message stands in the place of its result.

    `check` names the check that the call ran, such as tests, or is empty. The output of a check can show a failure.
    """
    if result is None:
        return Outcome.MISSING
    if result.failed:
        return Outcome.REFUSED if is_refusal(result) else Outcome.FAILED
    return Outcome.FAILED if check and _FAILURES.is_in(result.text) else Outcome.DONE


def _paths_in(body: str) -> tuple[str, ...]:
    """Return the path in the arguments of a call, or its first line if it looks like a path."""
    named = _PATH.search(body)
    first = body.partition("\n")[0].strip()
    if named:
        return (named[1].strip(),)
    return (first,) if first and " " not in first and ("/" in first or "." in first) else ()


def _first_line(text: str) -> str:
    first, _, following = text.strip().partition("\n")
    return f"{first} …" if following.strip() else first
