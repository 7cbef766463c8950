"""Open items: the work that a session did not finish.

Sources are the notes of the model, the last to-do list and sentences about unfinished work. An unanswered question, a
rejected plan, a failed check and an interruption are open items, too. Only the end of a session counts, because later
work finishes earlier items.
"""

import re
from collections.abc import Iterator, Sequence

from ...core.conversation import Exchange, Kind, Turn
from ...core.observation import Evidence
from ...core.sentences import strip_markdown
from .exchange_analysis import TELLING, analyze_exchange
from .handoff_notes import HandoffNote, NoteLabel, answer_notes, notes_of
from .phrase_patterns import phrases
from .salience import is_noise, salience
from .shell_commands import ShellRun, shell_runs
from .statements import Statement, quote_of, statements
from .user_request import is_routine, is_specific

_LISTS = {"TodoWrite", "update_plan", "todo_write", "write_todos"}
"""Names of tools for to-do lists."""
_ITEM = re.compile(r"\[(\w+)\] (.+)")
_UNFINISHED = {"pending", "in_progress"}
_LEFT = phrases("open_items.left")
_NEXT = phrases("open_items.next")
_OTHERS = phrases("open_items.others")
"""Pattern for words that indicate that a sentence is not about open work of this session."""
_LENGTHS = range(20, 241)
_COMMAND_MAX = 60
_FAILED_END = re.compile(r"The last (check|command), .+, failed\Z")
_TEXT = {Kind.PROSE, Kind.RECAP, Kind.COMPACTION}


def closing_exchanges(exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
    """Return the last exchange with a specific request, and the routine exchanges after it, such as a commit."""
    start = len(exchanges) - 1
    while start > 0 and is_routine(exchanges[start].prompt) and not exchanges[start].writes:
        start -= 1
    return exchanges[start:]


def closing_notes(exchanges: Sequence[Exchange]) -> list[HandoffNote]:
    """Return the notes at the end of a session, without repetitions.

    For each label, all notes come from the newest text that has notes with this label.
    """
    closing = closing_exchanges(exchanges)
    found: dict[NoteLabel, list[HandoffNote]] = {}
    concluded = False
    for exchange in reversed(closing):
        replies = [turn for turn in exchange.turns if turn.is_reply and turn.active]
        for turn in reversed([turn for turn in exchange.turns if turn.kind in _TEXT and turn.active]):
            if turn.kind is Kind.PROSE:
                notes = list(_of_reply(turn)) if turn in replies[-1:] else []
            else:
                notes = [] if turn.kind is Kind.COMPACTION and concluded else list(notes_of(turn))
            concluded = concluded or (turn.is_reply and _concludes(turn))
            for label in {note.label for note in notes} - found.keys():
                found[label] = [note for note in notes if note.label is label]
    found.setdefault(NoteLabel.OPEN, [])[:0] = _states(closing)
    return list({note.text: note for notes in found.values() for note in notes}.values())


def _of_reply(turn: Turn) -> Iterator[HandoffNote]:
    """Yield the notes from the sections of a reply, and then from its other sentences about unfinished work."""
    sections = list(answer_notes(turn))
    known = {note.evidence for note in sections}
    yield from sections
    yield from (note for note in _left(turn) if note.evidence not in known)


def _concludes(turn: Turn) -> bool:
    """Return whether a reply reports results, so that it replaces an earlier compaction summary."""
    return any(not is_noise(each.text) and salience(each.raw) >= TELLING for each in statements(turn))


def _left(turn: Turn) -> Iterator[HandoffNote]:
    """Yield a note for each sentence of a reply about unfinished work or next steps."""
    for stated in statements(turn):
        if len(stated.text) not in _LENGTHS or stated.text.endswith("?") or _OTHERS.search(stated.text):
            continue
        if announced := _NEXT.match(stated.text):
            yield _note(NoteLabel.NEXT, stated.text[announced.end() :].lstrip(" :—-"), stated)
        elif _LEFT.search(stated.text):
            yield _note(NoteLabel.OPEN, stated.text, stated)


def _states(closing: Sequence[Exchange]) -> Iterator[HandoffNote]:
    """Yield unfinished to-do items, and other signs of unfinished work in the last exchange.

    Signs are an unanswered question, a rejected plan, a failed check or command, and an interruption.
    """
    lists = [turn for each in closing for turn in each.turns if turn.kind is Kind.CALL and turn.tool in _LISTS]
    yield from _unfinished(lists[-1]) if lists else ()
    last = closing[-1]
    analysis = analyze_exchange(last)
    title = analysis.request.title
    if analysis.plan and analysis.plan.title and not analysis.plan.approved:
        text = f"The plan “{analysis.plan.title}” was proposed, and not carried out in this session"
        yield _open(text, analysis.plan.line, analysis.plan.title)
    elif analysis.interrupted and title:
        yield _open(f"The user interrupted the work on “{title}”", analysis.request.line, analysis.request.quote)
    if analysis.left_failing:
        command = analysis.left_failing
        yield _open(f"The last check, {command}, failed", analysis.failures[-1].line, command)
    elif (runs := list(shell_runs(last.active_turns))) and _is_failure(runs[-1]):
        command = runs[-1].segments[-1].text[:_COMMAND_MAX]
        yield _open(f"The last command, {command}, failed", runs[-1].line, runs[-1].quote)
    if replies := [turn for turn in last.turns if turn.is_reply]:
        yield from _question(replies[-1])


def failed_end(notes: Sequence[HandoffNote]) -> str:
    """Return `check` or `command` if the last check or command of the session failed, or else an empty text."""
    return next((found[1] for note in notes if (found := _FAILED_END.match(note.text))), "")


def _is_failure(run: ShellRun) -> bool:
    """Return whether a run failed and contains a command that does more than show files."""
    return run.failed and not all(segment.is_reader for segment in run.segments)


def _question(reply: Turn) -> Iterator[HandoffNote]:
    """Yield the question to the user with which a reply ends."""
    last = next(iter([*statements(reply)][-1:]), None)
    if last and last.text.endswith("?") and len(last.text) in _LENGTHS and is_specific(last.text):
        yield _note(NoteLabel.OPEN, f"Question to the user: {strip_markdown(last.raw)}", last)


def _unfinished(turn: Turn) -> Iterator[HandoffNote]:
    for item in _ITEM.finditer(turn.text):
        if item.group(1) in _UNFINISHED:
            yield _open(strip_markdown(item.group(2)), turn.line, quote_of(item.group()))


def _note(label: NoteLabel, text: str, stated: Statement) -> HandoffNote:
    return HandoffNote(label, text, Evidence(stated.line, stated.line, stated.quote))


def _open(text: str, line: int, quote: str) -> HandoffNote:
    return HandoffNote(NoteLabel.OPEN, text, Evidence(line, line, quote))
