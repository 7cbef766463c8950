"""Rules and pitfalls in the notes that agents write for later sessions: memory files and instructions of a project.

A sentence states a rule by its form: an order ("Run the linter first"), or a constraint ("the lock must not ..."). All
items below a heading such as "Rules" or "Gotchas" count. A description of the project is no rule. A memory file of the
type `feedback` is one rule, which its description states.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ...archiver.lines import GAP
from ...core.conversation import Exchange, Kind, Turn
from ...core.observation import Evidence, Observation, ObservationType
from ...core.text import TITLE_MAX, headline, strip_markdown, truncate
from .classification import TouchedFiles, file_name, relative_path
from .exchange_analysis import FACTS_MAX, observed_at
from .salience import phrases, regex
from .statements import Statement, is_pitfall, quote_of, statements, with_valid_quotes

NOTE_PREFIX = "Note of the agent in "
"""Beginning of the subtitle of every observation of a note."""
_MEMORY = re.compile(r"(?:^|/)(?:memory|memories)/[^/]+\.md$|(?:^|/)MEMORY\.md$")
_INSTRUCTIONS = regex("agent_notes.instructions")
_FRONT_MATTER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
_FIELD = re.compile(r"^\s*(description|type):[ \t]*[\"']?(.+?)[\"']?[ \t]*$", re.MULTILINE)
_STATED = {"", "feedback"}
"""Types of memory files whose description states a rule. The file of another type describes the project or the user."""
_PATCHED = re.compile(r"^\*\*\* (?:Add|Update) File: (.+)$", re.MULTILINE)
_PATCH_LINE = re.compile(rf"\+|.\s{{0,3}}#{{1,6}}\s|{GAP.pattern}")
"""Pattern for a line of a patch that adds text, or that shows a heading or omitted text."""
_NEW_TEXT = re.compile(r"\b(?:new_string|new_str|newText|content|contents|file_text)=")
_BLOCK = re.compile(r"\s*(?:[-*+•]\s|\d{1,3}[.)]\s|#|```|~~~|\||>|---|\*\*[^*]+:\*\*|$)")
"""Pattern for a line that does not continue the line before it."""
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_ITEM = re.compile(r"\A\s*(?:[-*+•]|\d{1,3}[.)])\s+")
_CODE_LABEL = re.compile(r"[*\s]*`[^`]+`[*\s]*(?:\([^)]*\)\s*)?(?:[:—–-]|/ )")
"""Pattern for an item that names a command or a file, and describes it."""
_OTHER = re.compile(r"\[[^\]]+\]\([^)]+\.md\)|[|>]|\W*(?:TODO|DONE|MERGED|✅|☑)")
"""Pattern for an entry of an index, a row of a table, a quotation, and a report of work."""
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]")
_LEAD = regex("agent_notes.lead")
"""Pattern for what can stand before an order: a condition, a label, an adverb or a mark."""
_NOT_ORDER = regex("agent_notes.not_order")
"""Pattern for a noun that is spelled like a verb: "Test files are ...", "Build: ..."."""
_ORDER = phrases("agent_notes.order")
_CONSTRAINT = phrases("agent_notes.constraint")
_RULES_HEADING = phrases("agent_notes.rules_heading")
_DESCRIBES = re.compile(r"\b(?:will|does|do|is|are|has|have|provides?|contains?|includes?|supports?)\b[^:]*:\W*\Z")
"""Pattern for the introduction of a list that describes what something does: "The script will:"."""
_RULE_LABEL = re.compile(r"\A(?:rule|how to apply|important)(?: \([^)]*\))?:\s+", re.IGNORECASE)
_PRONOUN = re.compile(r"\b(?:it|them|this|that|these|those|such)\b", re.IGNORECASE)
_HEADING_MAX = 60
"""Maximum characters of a heading that names rules. A longer one is a sentence."""
_LENGTHS = range(20, 401)
_TEXT_MAX = 320


class NoteKind(StrEnum):
    """Kind of a sentence in a note."""

    RULE = "rule"
    GOTCHA = "gotcha"


class NoteRule(Struct, frozen=True):
    """Rule or pitfall that an agent noted, with the line and the quote that prove it."""

    kind: NoteKind
    text: str
    evidence: Evidence


class _Note(Struct, frozen=True):
    """Description and type of a note, its rules, and the call that wrote it."""

    description: str
    type: str
    rules: tuple[NoteRule, ...]
    call: Turn

    @property
    def proposed(self) -> tuple[NoteRule, ...]:
        """Rules of the note. A note that describes one rule is a single proposal, with the first order in its text."""
        if not self.description:
            return self.rules
        if self.type not in _STATED:
            return tuple(rule for rule in self.rules if _is_constraint(rule.text))
        is_whole = _is_order(self.description) or _is_constraint(self.description)
        detail = "" if is_whole or not self.rules else f" {self.rules[0].text}"
        text = truncate(f"{self.description.rstrip('.')}.{detail}", _TEXT_MAX)
        proof = Evidence(self.call.line, self.call.line, quote_of(self.description))
        return (NoteRule(NoteKind.RULE if is_whole or detail else NoteKind.GOTCHA, text, proof),)


def is_note(path: str) -> bool:
    """Return whether a file holds notes of an agent for later sessions."""
    return is_memory_file(path) or _INSTRUCTIONS.search(path.replace("\\", "/")) is not None


def is_memory_file(path: str) -> bool:
    """Return whether a file holds the memory of an agent. Unlike instructions, other agents do not load it."""
    return _MEMORY.search(path.replace("\\", "/")) is not None


def extract_notes(exchange: Exchange, files: TouchedFiles) -> Iterator[Observation]:
    """Yield an observation for each note with rules, with the description of the note or its first rule as title."""
    for path, call in _written_notes(exchange, files.modified):
        note = _read_note(call, path)
        facts = (note.rules or note.proposed)[:FACTS_MAX]
        about = note.description or (facts[0].text if facts else "")
        if facts and (title := headline(about) or truncate(about, TITLE_MAX)):
            yield Observation(
                type=ObservationType.PATTERN,
                title=title,
                subtitle=f"{NOTE_PREFIX}{file_name(path)}",
                facts=tuple(rule.text for rule in facts),
                files_modified=(path,),
                evidence=tuple(rule.evidence for rule in facts),
                at=observed_at(exchange),
            )


def note_rules(exchange: Exchange, is_read: Callable[[str], bool] = is_note) -> list[NoteRule]:
    """Return the rules and pitfalls to propose from the notes that an exchange wrote, without repetitions.

    `is_read` selects the notes by their path.
    """
    written = _written_notes(exchange, exchange.writes)
    notes = [_read_note(call, path) for path, call in written if is_read(path)]
    return list({rule.text: rule for note in notes for rule in note.proposed}.values())


def _written_notes(exchange: Exchange, modified: Sequence[str]) -> Iterator[tuple[str, Turn]]:
    """Yield each written note with the call that wrote it.

    The index of a memory folder repeats other notes, so it counts only if the exchange wrote no other note.
    """
    notes = [path for path in modified if is_note(path)]
    kept = [path for path in notes if file_name(path) != "MEMORY.md"] or notes
    calls = {turn.call: turn for turn in exchange.active_turns if turn.kind is Kind.CALL and turn.call}
    for path in kept:
        for turn in exchange.active_turns:
            wrote = any(relative_path(name, ()).endswith(path) for name in turn.writes)
            if wrote and turn.call in calls and not turn.failed:
                yield path, calls[turn.call]


def _read_note(call: Turn, path: str) -> _Note:
    text = _added(call, path)
    front = _FRONT_MATTER.match(text)
    fields = dict(_FIELD.findall(front[1])) if front else {}
    shown = Turn(call.line, call.speaker, call.kind, _unwrapped(text[front.end() :] if front else text))
    return _Note(fields.get("description", ""), fields.get("type", "").lower(), tuple(_stated_rules(shown, call)), call)


def _added(call: Turn, path: str) -> str:
    """Return the lines that a call added to a note, with the headings above them."""
    _, _, body = call.text.partition("\n")
    if patched := list(_PATCHED.finditer(call.text)):
        ends = [match.start() for match in patched[1:]] + [len(call.text)]
        parts = [
            call.text[match.end() : end] for match, end in zip(patched, ends, strict=True) if _is_same(match[1], path)
        ]
        lines = [line for part in parts for line in part.split("\n")]
        added = (line if GAP.search(line) else line[1:] for line in lines if _PATCH_LINE.match(line))
        return "\n".join(added)
    if named := _NEW_TEXT.search(call.text):
        return call.text[named.end() :]
    old, mark, new = body.partition("\n+ ")
    if not (mark and body.startswith("- ")):
        return body
    *earlier, last = new.split("\n+ ")
    kept = [part.partition("\n- ")[0] for part in earlier] + [last]  # An edit of several places repeats the marks.
    known = {line.strip() for line in old[2:].split("\n")}
    lines = [line for part in kept for line in part.split("\n")]
    return "\n".join(line for line in lines if _HEADING.match(line) or not line.strip() or line.strip() not in known)


def _is_same(name: str, path: str) -> bool:
    return relative_path(name.strip(), ()).endswith(relative_path(path, ()))


def _unwrapped(text: str) -> str:
    """Join the lines of a hard-wrapped paragraph or list item."""
    lines: list[str] = []
    fenced = False
    for line in text.split("\n"):
        is_fence = line.lstrip().startswith(("```", "~~~"))
        above = lines[-1] if lines else ""
        continues = above.strip() and not (above.rstrip().endswith(":") or _HEADING.match(above) or GAP.search(above))
        if continues and not (
            fenced or is_fence or _BLOCK.match(line) or GAP.search(line) or above.lstrip()[:1] in "`|~"
        ):
            lines[-1] = f"{above.rstrip()} {line.strip()}"
        else:
            lines.append(line)
        fenced ^= is_fence
    return "\n".join(lines)


def _stated_rules(shown: Turn, call: Turn) -> Iterator[NoteRule]:
    """Yield the rules in a text, in order. Rules in consecutive sentences of a paragraph are one.

    A rule such as "do not remove it" includes the sentence before it.
    """
    lines = shown.text.split("\n")
    place, group = 0, ""
    above: Statement | None = None
    pending: list[Statement] = []
    for statement in with_valid_quotes(statements(shown), call):
        here = next((number for number in range(place, len(lines)) if statement.raw[:60] in lines[number]), place)
        yield from _introduced(lines, place, here, call)
        same, group = group, statement.heading if _is_list_order(statement) else str(here)
        is_rule = _states_rule(statement)
        if not is_rule or same != group:
            yield from _joined(pending)
            pending = []
        if is_rule:
            refers = above is not None and here == place and not pending and _PRONOUN.search(statement.raw)
            pending += [above, statement] if above is not None and refers else [statement]
        place, above = here, statement
    yield from _joined(pending)
    yield from _introduced(lines, place, len(lines), call)


def _joined(stated: Sequence[Statement]) -> Iterator[NoteRule]:
    if stated:
        first = stated[0]
        under = strip_markdown(first.heading) if _is_list_order(first) else ""
        texts = (strip_markdown(statement.raw) for statement in stated)
        text = f"{under} {'; '.join(texts)}" if under else " ".join(texts)
        is_gotcha = any(is_pitfall(replace(statement, heading=statement.outline)) for statement in stated)
        kind = NoteKind.GOTCHA if is_gotcha else NoteKind.RULE
        yield NoteRule(kind, _shown(text), Evidence(first.line, first.line, first.quote))


def _introduced(lines: Sequence[str], start: int, end: int, call: Turn) -> Iterator[NoteRule]:
    """Yield each order or constraint above a code block, with the first command of the block."""
    for number in range(start, end):
        text = strip_markdown(_ITEM.sub("", lines[number]))
        below = [line.strip() for line in lines[number + 1 : end] if line.strip()[:1] not in {"", "#"}]
        is_above_code = text.endswith(":") and len(below) > 1 and below[0].startswith(("```", "~~~"))
        if is_above_code and (_is_constraint(text) or _is_order(text)):
            command = below[1].partition("  #")[0].strip()
            quote = quote_of(lines[number].strip())
            yield NoteRule(NoteKind.RULE, _shown(f"{text} `{command}`"), Evidence(call.line, call.line, quote))


def _shown(text: str) -> str:
    return truncate(_RULE_LABEL.sub("", text), _TEXT_MAX)


def _states_rule(statement: Statement) -> bool:
    """Return whether a statement of a note is a rule or a pitfall, by its form or by the heading above it."""
    text = strip_markdown(statement.raw)
    in_order = _is_list_order(statement)
    if (len(text) not in _LENGTHS and not in_order) or text.endswith(("?", ":")) or _OTHER.match(statement.raw):
        return False
    names = [name for name in statement.outline.split(" / ") if len(name) <= _HEADING_MAX]
    if in_order or (statement.listed and any(map(_RULES_HEADING.search, names))):
        return True
    is_described = _CODE_LABEL.match(statement.raw) or _DESCRIBES.search(statement.topic)
    return _is_constraint(text) or (not is_described and _is_order(text))


def _is_list_order(statement: Statement) -> bool:
    """Return whether a statement is part of a list whose introduction is an order: "Before merging, ensure:"."""
    heading = strip_markdown(statement.heading)
    return statement.listed and heading.endswith(":") and _is_order(f"{heading[:-1]} the following")


def _is_constraint(text: str) -> bool:
    return _CONSTRAINT.search(_QUOTED.sub("", text)) is not None


def _is_order(text: str) -> bool:
    """Return whether a sentence is an order, after a condition, a label or an adverb."""
    while True:
        if _ORDER.match(text) and not _NOT_ORDER.match(text):
            return True
        lead = _LEAD.match(text)
        if lead is None:
            return False
        text = text[lead.end() :]
