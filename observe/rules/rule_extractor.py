"""Extraction of the observations of one exchange by rules, including decisions, verdicts and open items.

- A decision is an answer to a question of the agent, or a ruling that names its subject.
- A verdict belongs to an exchange that changed nothing: an answer, the cause of a problem, or the findings of a
  review.
- Open items are the work that a session did not finish. Sources are the notes of the model, the last to-do list and
  sentences about unfinished work. An unanswered question, a rejected plan, a failed check and an interruption count
  too. Only the end of a session counts, because later work finishes earlier items.
"""

import re
from collections.abc import Iterator, Sequence

from msgspec.structs import replace

from ...archiver.lines import one_line
from ...core.conversation import Exchange, Kind, Session, Turn
from ...core.observation import OPEN, Evidence, Observation, ObservationType, is_open_item
from ...core.text import TITLE_MAX, headline, sentences, shorten, strip_markdown, truncate
from .. import rules
from .agent_notes import extract_notes
from .classification import TouchedFiles, TypeSignals, classify, concepts, touched_files
from .exchange_analysis import (
    TELLING,
    ExchangeAnalysis,
    UserAnswer,
    VerifiedObservations,
    analyze_exchange,
    evidence,
    is_refusal,
    narrative,
    observed_at,
    select,
    verify,
)
from .notes import HandoffNote, NoteLabel, answer_notes, notes_of
from .outcome import asked, extract_outcome, remarks_of, subtitle
from .salience import CAUSE, NAMED, QUESTION_WORDS, RULE, is_intention, is_noise, is_status, phrases, regex, salience
from .shell_commands import ShellRun, extract_repairs, shell_runs
from .statements import Statement, headings, is_filler, is_guess, quote_of, statements
from .titles import REVIEW, answer_title, best_answer, is_aside
from .user_request import is_routine, is_specific, read_request, trim_to_budget

_RECOMMENDED = re.compile(r"\s*\(recommended\)", re.IGNORECASE)
_DECISIONS_MAX = 12
"""Maximum number of decisions of an exchange."""
_CHOICE_MAX, _ANSWER_MAX = 80, 50
"""Maximum characters of an answer that decides something, and of the answer in a title."""
_PROCEDURAL = phrases("decisions.procedural")
"""Pattern for questions about the next step, whose answers have no lasting effect."""
_NO_CHOICE = phrases("decisions.no_choice")
"""Pattern for answers that leave the decision open."""
_POINTER = phrases("decisions.pointer")
"""Pattern for answers that point to something outside the answer."""
_FOR_NOW = phrases("decisions.for_now")
_LASTING = phrases("decisions.lasting")
_POINTS = regex("rule_extractor.points")
_PRONOUN = re.compile(r"\b(?:it|them|they)\b", re.IGNORECASE)
"""Patterns for words whose meaning only the conversation gives, always or often."""
_PREFERENCE = phrases("decisions.preference")


def extract_decisions(exchange: Exchange, analysis: ExchangeAnalysis) -> Iterator[Observation]:
    """Yield an observation for each question that the user answered, and one for the user's own rulings.

    An answer that names no subject belongs to the answer before it.
    """
    groups: list[list[UserAnswer]] = []
    for answer in filter(_is_choice, analysis.answers):
        if is_specific(f"{_last_sentence(answer.question)} {answer.choice}"):
            groups.append([answer])
        elif groups:
            groups[-1].append(answer)
    for answers in groups[:_DECISIONS_MAX]:
        yield _from_answers(exchange, analysis, answers)
    typed = analysis.request.statements if analysis.request.human else ()
    if rulings := [each for each in (*typed, *analysis.objections) if _is_ruling(each)][:4]:
        yield _from_rulings(exchange, rulings)


def _is_choice(answer: UserAnswer) -> bool:
    """Return whether an answer decides something.

    An answer that points elsewhere, or leaves the choice open, does not. A long one discusses the question.
    """
    undecided = _NO_CHOICE.match(answer.choice) or _POINTER.match(answer.choice)
    is_short = len(answer.choice) <= _CHOICE_MAX and "?" not in answer.choice
    return is_short and not (undecided or _PROCEDURAL.search(answer.question))


def _is_ruling(statement: Statement) -> bool:
    """Return whether a sentence of the user rules something by name, and can be understood alone."""
    sentence = statement.text
    if not 15 < len(sentence) < 240 or "?" in sentence or _PREFERENCE.search(sentence) is None:
        return False
    if _POINTS.search(sentence) or _FOR_NOW.search(sentence):
        return False
    lasting = _LASTING.search(sentence) is not None and is_specific(sentence, 3)
    return lasting or (NAMED.search(statement.raw) is not None and _PRONOUN.search(sentence) is None)


def _from_answers(exchange: Exchange, analysis: ExchangeAnalysis, answers: Sequence[UserAnswer]) -> Observation:
    about = analysis.request.title
    return Observation(
        type=ObservationType.DECISION,
        title=_title(answers[0]),
        subtitle=truncate(answers[0].question, 160),
        narrative=narrative([f"Asked while working on: {about}" if about else "", _answer_text(answers[0])]),
        facts=tuple(_answer_text(answer) for answer in answers),
        concepts=concepts([f"{answer.question} {answer.choice}" for answer in answers], ()),
        evidence=tuple(Evidence(answer.line, answer.line, answer.quote) for answer in answers),
        at=observed_at(exchange),
        origin="human",
    )


def _title(answer: UserAnswer) -> str:
    """Return the question, or the clause at its start, with the answer."""
    choice = strip_markdown(_RECOMMENDED.sub("", answer.choice))
    choice = shorten(choice, _ANSWER_MAX) or truncate(choice, _ANSWER_MAX)
    question, room = _last_sentence(answer.question), TITLE_MAX - len(choice) - 2
    start = question.partition(", ")[0]
    short = shorten(question, room) or (start if len(start) <= room else truncate(question, room))
    return f"{short}: {choice}"


def _last_sentence(question: str) -> str:
    """Return the last sentence of a question, without its question mark."""
    last = [question[start:end] for start, end in sentences(question)][-1:]
    return strip_markdown(" ".join(last)).rstrip("?")


def _answer_text(answer: UserAnswer) -> str:
    return f"{truncate(answer.question, 180).rstrip(' :')} → {truncate(answer.choice, 120)}"


def _from_rulings(exchange: Exchange, rulings: Sequence[Statement]) -> Observation:
    return Observation(
        type=ObservationType.DECISION,
        title=headline(rulings[0].text) or truncate(rulings[0].text, TITLE_MAX),
        narrative=narrative([f"The user said: “{' '.join(each.text for each in rulings)}”"]),
        facts=tuple(ruling.text for ruling in rulings),
        concepts=concepts([each.raw for each in rulings], ()),
        evidence=evidence(rulings),
        at=observed_at(exchange),
        origin="human",
    )


_LISTS = {"TodoWrite", "update_plan", "todo_write", "write_todos"}
"""Names of tools for to-do lists."""
_DIALOG = "AskUserQuestion"
"""Name of the tool with which Claude Code asks the user. After each question, the call lists the options."""
_ITEM = re.compile(r"\[(\w+)\] (.+)")
_UNFINISHED = {"pending", "in_progress"}
_LEFT = phrases("open_items.left")
_NEXT = phrases("open_items.next")
_OTHERS = phrases("open_items.others")
"""Pattern for words that indicate that a sentence is not about open work of this session."""
_LENGTHS = range(15, 241)
_COMMAND_MAX = 60
_REQUEST_MAX = 120
_QUESTION_MAX = 150
_BAD_END = re.compile(r"The last (check|command), .+, (failed)\Z|The user (refused) the last (command), .+\Z")
_ASKED = "Question to the user: "
_READY = phrases("open_items.ready")
"""Pattern for sentences that only say what a question to the user asks: `Ready to commit. Go ahead?`."""
_NEXT_TASK = phrases("open_items.next_task")
"""Pattern for questions about the next task, which is no part of this session."""
_UNPUSHED = regex("open_items.unpushed")
_DELIVERS = re.compile(r"\b(?:git|gh)\b[^\n;|&]{0,80}\b(commit|push|merge)\b(?![-\w])")
"""Pattern for commands that commit, push or merge."""
_PUBLISHES = re.compile(r"\b(?:push|PR|pull request|merge|publish|release)\b", re.IGNORECASE)
_GIT = re.compile(r"(?:cd \S+ && )?(?:git|gh)\b")
_TEXT = {Kind.PROSE, Kind.RECAP, Kind.COMPACTION}


def closing_exchanges(exchanges: Sequence[Exchange]) -> Sequence[Exchange]:
    """Return the last exchange with a specific request, and the routine exchanges after it, such as a commit."""
    start = len(exchanges) - 1
    while start > 0 and not exchanges[start].writes and _only_delivers(exchanges[start]):
        start -= 1
    return exchanges[start:]


def _only_delivers(exchange: Exchange) -> bool:
    """Return whether a request names no subject, or the exchange only ran Git commands that commit or publish."""
    calls = [turn.text.removeprefix(f"{turn.tool}: ") for turn in exchange.active_turns if turn.kind is Kind.CALL]
    delivers = any(map(_DELIVERS.search, calls)) and all(map(_GIT.match, calls))
    return delivers or is_routine(exchange.prompt)


def closing_notes(exchanges: Sequence[Exchange]) -> list[HandoffNote]:
    """Return the notes at the end of a session, without repetitions.

    For each label, all notes come from the newest text that has notes with this label. A later commit, push or merge
    closes the notes about it. A question to the user replaces a sentence that only says that the work is ready.
    """
    closing = closing_exchanges(exchanges)
    found: dict[NoteLabel, list[HandoffNote]] = {}
    delivered: set[str] = set()
    concluded = False
    for exchange in reversed(closing):
        replies = [turn for turn in exchange.turns if turn.is_reply and turn.active]
        for turn in reversed([turn for turn in exchange.turns if turn.kind in _TEXT and turn.active]):
            if turn.kind is Kind.PROSE:
                notes = list(_of_reply(turn)) if turn in replies[-1:] else []
            else:
                notes = [] if turn.kind is Kind.COMPACTION and concluded else list(notes_of(turn))
            concluded = concluded or (turn.is_reply and _concludes(turn))
            notes = [note for note in notes if not any(step in note.text.lower() for step in delivered)]
            for label in {note.label for note in notes} - found.keys():
                found[label] = [note for note in notes if note.label is label]
        calls = [turn.text for turn in exchange.turns if turn.kind is Kind.CALL]
        delivered |= {step for call in calls for step in _DELIVERS.findall(call)}
    found.setdefault(NoteLabel.OPEN, [])[:0] = _signs(closing, exchanges)
    if any(note.text.startswith(_ASKED) for note in found[NoteLabel.OPEN]):
        found[NoteLabel.OPEN] = [note for note in found[NoteLabel.OPEN] if not _READY.match(note.text)]
    kept = {note.text: note for notes in found.values() for note in notes}
    return [note for text, note in kept.items() if not any(text in other for other in kept if other != text)]


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
    """Yield a note for each sentence of a reply about unfinished work or next steps, also above a list."""
    for heading in headings(turn):
        is_introduction = heading.raw.rstrip("*").endswith(":") and len(heading.raw) in _LENGTHS
        if is_introduction and _LEFT.search(heading.raw) and not _OTHERS.search(heading.raw):
            yield _open(strip_markdown(heading.raw).rstrip(":"), turn.line, quote_of(heading.raw))
    above: Statement | None = None
    for stated in statements(turn):
        before, above = above, stated
        if len(stated.text) not in _LENGTHS or stated.text.endswith("?") or _OTHERS.search(stated.text):
            continue
        if announced := _NEXT.match(stated.text):
            yield _note(NoteLabel.NEXT, stated.text[announced.end() :].lstrip(" :—-"), stated)
        elif _LEFT.search(stated.text):
            unpushed = _UNPUSHED.search(strip_markdown(stated.raw))
            yield _note(NoteLabel.OPEN, _unpushed(unpushed) if unpushed else _with_subject(stated, before), stated)


def _unpushed(found: re.Match[str]) -> str:
    return f"Not pushed: {found['commit']}" + (f" on {found['branch']}" if found["branch"] else "")


def _signs(closing: Sequence[Exchange], exchanges: Sequence[Exchange]) -> Iterator[HandoffNote]:
    """Yield unfinished to-do items, and other signs of unfinished work in the last exchange.

    Signs are an unanswered question, a rejected plan, a failed check or command, an interruption, and a request
    without a final reply. A commit, or a reply that reports results, comes later and so outweighs them.
    """
    lists = [turn for each in closing for turn in each.turns if turn.kind is Kind.CALL and turn.tool in _LISTS]
    yield from _unfinished(lists[-1]) if lists else ()
    last = closing[-1]
    analysis = analyze_exchange(last)
    title = analysis.request.title
    if analysis.plan and analysis.plan.title and not analysis.plan.approved:
        text = f"The plan “{analysis.plan.title}” was proposed, and not carried out in this session"
        yield _open(text, analysis.plan.line, analysis.plan.title)
    elif analysis.interrupted and title and not analysis.accepted_commits:
        text = f"The user interrupted the work on {_with_work(title, exchanges)}"
        yield _open(text, analysis.request.line, analysis.request.quote)
    yield from _failure(last, analysis)
    if dialog := [*_dialog(last)]:
        yield from dialog
        return
    replies = [turn for turn in last.active_turns if turn.is_reply]
    if replies:
        yield from _question(replies[-1])
    elif lists:
        return  # The items of the list state what is open.
    if not analysis.interrupted and _is_cut_off(last, analysis, replies[-1] if replies else None):
        yield from _unanswered(exchanges)


def _failure(last: Exchange, analysis: ExchangeAnalysis) -> Iterator[HandoffNote]:
    """Yield the last check or command of an exchange if it failed, or if the user refused it."""
    if analysis.left_failing:
        command = analysis.left_failing
        yield _open(f"The last check, {command}, failed", analysis.failures[-1].line, command)
    elif (runs := list(shell_runs(last.active_turns))) and _is_failure(runs[-1]) and not _is_concluded(last, runs[-1]):
        command = runs[-1].segments[-1].text
        if len(command) > _COMMAND_MAX:
            command = f"{command[:_COMMAND_MAX].rsplit(' ', 1)[0]} …"
        refused = is_refusal(runs[-1].result)
        text = f"The user refused the last command, {command}" if refused else f"The last command, {command}, failed"
        yield _open(text, runs[-1].line, runs[-1].quote)


def _is_cut_off(last: Exchange, analysis: ExchangeAnalysis, reply: Turn | None) -> bool:
    """Return whether an exchange ends before its final reply: with a call without a result, or an announcement.

    A commit without a result counts as the end of the work, unless a push or a pull request was to follow.
    """
    turns = [turn for turn in last.active_turns if turn.kind is not Kind.INJECTED]
    is_running = bool(turns) and turns[-1].kind is Kind.CALL and bool(turns[-1].call)
    if is_running and _DELIVERS.search(turns[-1].text):
        return _PUBLISHES.search(f"{last.prompt}\n{reply.text if reply else ''}") is not None
    return is_running or (reply is not None and _announces(reply) and not analysis.accepted_commits)


def _unanswered(exchanges: Sequence[Exchange]) -> Iterator[HandoffNote]:
    """Yield that the last request has no final reply."""
    prompt = next((turn for turn in exchanges[-1].turns if turn.kind is Kind.PROMPT), None)
    if prompt and (text := one_line(prompt.text, _REQUEST_MAX)):
        yield _open(f"No final reply to {_with_work(text, exchanges)}", prompt.line, quote_of(prompt.text.strip()))


def _with_work(request: str, exchanges: Sequence[Exchange]) -> str:
    """Return the last request in quotation marks, with the request before it if the last one names no subject."""
    names_subject = is_specific(request) and is_open_item(f"{OPEN}{request}")
    earlier = () if names_subject else exchanges[:-1]
    titles = (read_request(exchange).title for exchange in reversed(earlier))
    work = next(filter(is_specific, titles), "")
    return f"“{request}”" + (f", after the work on “{truncate(work, _REQUEST_MAX)}”" if work else "")


def bad_end(notes: Sequence[HandoffNote]) -> str:
    """Return how the last check or command ended, such as `check failed` or `command refused`, or an empty text."""
    ending = next(filter(None, (_BAD_END.match(note.text) for note in notes)), None)
    return f"{ending[1] or ending[4]} {ending[2] or ending[3]}" if ending else ""


def _is_failure(run: ShellRun) -> bool:
    """Return whether a run failed and contains a command that does more than show files."""
    return run.failed and not all(segment.is_reader for segment in run.segments)


def _is_concluded(exchange: Exchange, run: ShellRun) -> bool:
    """Return whether a reply after a run reports results, so that the run was not the end of the work."""
    return any(turn.is_reply and turn.line > run.line and _concludes(turn) for turn in exchange.active_turns)


def _announces(reply: Turn) -> bool:
    """Return whether a reply ends with what the agent is about to do."""
    text = strip_markdown(reply.text.strip().rsplit("\n", 1)[-1])
    last = next((text[start:end] for start, end in reversed([*sentences(text)])), "")
    return is_intention(last) and not (last.endswith("?") or "let me know" in last.lower())


def _question(reply: Turn) -> Iterator[HandoffNote]:
    """Yield the question to the user with which a reply ends, with the sentence before it if it names no subject.

    The question comes first, because a long text loses its end.
    """
    *others, last = [None, *statements(reply)]
    if last and last.text.endswith("?") and len(last.text) < _LENGTHS.stop and not _NEXT_TASK.search(last.text):
        text = _with_subject(last, others[-1], words=3)
        question = text[: text.find("?") + 1]
        if len(question) > _QUESTION_MAX:
            text = f"{truncate(question, _QUESTION_MAX)} …?"
        if is_specific(text):
            yield _note(NoteLabel.OPEN, f"{_ASKED}{text}", last)


def _dialog(last: Exchange) -> Iterator[HandoffNote]:
    """Yield the first question of a dialog with which an exchange ends, because the user has not answered it."""
    turns = [turn for turn in last.active_turns if turn.kind is not Kind.INJECTED]
    if turns and turns[-1].kind is Kind.CALL and turns[-1].tool == _DIALOG:
        call = turns[-1]
        question = call.text.removeprefix(f"{_DIALOG}: ").partition("\n")[0].rpartition(" [")[0]
        yield from _question(Turn(call.line, call.speaker, Kind.PROSE, question))


def _with_subject(stated: Statement, above: Statement | None, words: int = 2) -> str:
    """Return the last of the joined sentences, followed by those before it if it names no subject."""
    text = strip_markdown(stated.raw)
    start, end = [*sentences(text)][-1]
    if is_specific(text[start:end], words):
        return text[start:end]
    before = text[:start].strip() or (strip_markdown(above.raw) if above else "")
    return f"{text[start:end]} {before}".strip()


def _unfinished(turn: Turn) -> Iterator[HandoffNote]:
    for item in _ITEM.finditer(turn.text):
        if item.group(1) in _UNFINISHED:
            yield _open(strip_markdown(item.group(2)), turn.line, quote_of(item.group()))


def _note(label: NoteLabel, text: str, stated: Statement) -> HandoffNote:
    return HandoffNote(label, text, Evidence(stated.line, stated.line, stated.quote))


def _open(text: str, line: int, quote: str) -> HandoffNote:
    return HandoffNote(NoteLabel.OPEN, text, Evidence(line, line, quote))


_ASKS = re.compile(
    rf"(?:{QUESTION_WORDS}|is|are|was|were|do|does|did|has|have|can|could|should|would)\b", re.IGNORECASE
)
_FACTS = 6
_FILE = re.compile(r"[\w-]+\.[a-zA-Z]{1,5}\b(?!\()")
_PULL_REQUEST = re.compile(r"/pull/(\d+)|\bPR\s?#?(\d+)")


def extract_verdict(exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles) -> Observation | None:
    """Return what an investigation found that the user asked for, or None.

    Without a question that names its subject, and a final reply that answers it, there is no verdict.
    """
    request = analysis.request
    turns = [turn for turn in exchange.active_turns if turn.kind is not Kind.INJECTED]
    is_answered = bool(turns) and turns[-1].is_reply and not analysis.interrupted
    if not (is_answered and request.human) or request.routine or not is_specific(request.title):
        return None
    if REVIEW.match(request.title):
        return _review(exchange, analysis, files)
    if not (request.looks or request.title.endswith("?") or _ASKS.match(request.title)):
        return None
    answer = best_answer(analysis)
    if answer is None or not (title := answer_title(answer, analysis)):
        return None
    best = next((each for each in analysis.conclusion if each.raw == answer.raw), None)
    others = [each for each in (*analysis.conclusion, *remarks_of(analysis)) if each != best and not is_guess(each)]
    facts = select((each for each in others if not (is_filler(each) or is_aside(each))), count=_FACTS, least=3)
    return _observation(exchange, analysis, files, title, [*([best] if best else []), *facts])


def _review(exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles) -> Observation | None:
    """Return the findings of a review that name a file and its defect, under the verdict of the review."""
    findings = [each for each in analysis.conclusion if _is_finding(each)]
    answer = best_answer(analysis)
    if not findings or answer is None:
        return None
    number = _PULL_REQUEST.search(analysis.request.whole)
    about = f" of PR #{number[1] or number[2]}" if number else ""
    title = shorten(f"Review{about}: {answer.text}", TITLE_MAX)
    kept = select(findings, count=_FACTS)
    return _observation(exchange, analysis, files, title, kept) if title and kept else None


def _is_finding(statement: Statement) -> bool:
    named = _FILE.search(statement.raw) is not None or _FILE.search(statement.topic) is not None
    return named and not (is_filler(statement) or is_aside(statement) or is_status(statement.text))


def _observation(
    exchange: Exchange, analysis: ExchangeAnalysis, files: TouchedFiles, title: str, facts: Sequence[Statement]
) -> Observation:
    words = " ".join(fact.text for fact in facts)
    request = analysis.request
    quoted = Statement(request.text, request.quote, request.text, request.line, exchange.turns[0].speaker)
    return Observation(
        type=_kind(analysis, facts),
        title=title,
        subtitle=subtitle(analysis, facts, title),
        narrative=narrative([asked(analysis), *(fact.text for fact in facts[:1])]),
        facts=tuple(fact.text for fact in facts),
        concepts=concepts([title, request.text, *(fact.raw for fact in facts)], ()),
        files_read=files.named_in(words).read,
        evidence=evidence([*facts, *([quoted] if request.quote else [])]),
        at=observed_at(exchange),
    )


def _kind(analysis: ExchangeAnalysis, facts: Sequence[Statement]) -> ObservationType:
    """Return the type: a rule, a diagnosis of a problem, or else something learned."""
    if facts and RULE.search(facts[0].raw) and not CAUSE.search(facts[0].raw):
        return ObservationType.PATTERN
    request, conclusion = f"{analysis.request.title} {analysis.request.whole}", " ".join(fact.raw for fact in facts)
    kind = classify(TypeSignals([], request, conclusion, writes=(), changed=False))
    return kind if kind is ObservationType.DEBUG else ObservationType.LEARNING


def observe(exchange: Exchange, session: Session) -> VerifiedObservations:
    """Extract the observations of one exchange, most important first, with verified evidence.

    In each observation, `evidence[i]` proves `facts[i]`. Evidence after the last fact proves the narrative.
    """
    extracted = (trim_to_budget(replace(each, extractor=rules.VERSION)) for each in _extract(exchange, session))
    return verify(exchange, extracted)


def _extract(exchange: Exchange, session: Session) -> Iterator[Observation]:
    analysis = analyze_exchange(exchange)
    files = touched_files(exchange, session)
    result = extract_outcome(exchange, analysis, files) or extract_verdict(exchange, analysis, files)
    if result is not None:
        yield result
    yield from extract_decisions(exchange, analysis)
    yield from extract_repairs(exchange, session)
    yield from extract_notes(exchange, files)
