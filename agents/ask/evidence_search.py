"""Search for the archived entries and shell commands from which rules compose an answer, and their ranking.

The archive counts its searches, details and excerpts, and the tokens that they cost when printed.

Shell commands answer the same questions as `palaver how` (such as "how do I run the tests") and `palaver fix`.
"""

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from ...core.errors import InvalidInput
from ...core.query import Filters, Grouping, HitKind, Query
from ...core.reports import KnownFix, ProjectCommand, Remedy, many
from ...core.results import AnswerLabel, AnswerReceipt, CitedSource, Detail, Finding, FindingKind, Hit, Results
from ...core.tokens import count
from ...observe.commands.known_fixes import known_fixes
from ...observe.commands.project_commands import GENERAL_WORDS, parse_task, project_commands, words_of
from ...search.query.relevance import Relevance, key_words
from ...templates.environment import has_transcript
from .citation_check import Claim, claims_of
from .question_plan import QuestionPlan, asks_for_newest, names_no_topic, plan, without_newest

if TYPE_CHECKING:
    from ...core.results import TranscriptExcerpt
    from ...search.archive_search import ArchiveSearch
    from ...templates.render import Renderer


class MeteredArchive:
    """Search, details and excerpts of an archive, with their costs. Direct calls of `archive` are not counted."""

    def __init__(self, archive: "ArchiveSearch", renderer: "Renderer") -> None:
        self.archive, self.renderer = archive, renderer
        self._tokens = self._searches = self._details = self._reads = 0

    def find(self, query: "Query") -> "Results":
        """Search, and add the tokens of the printed hits to the costs."""
        results = self.archive.find(query, snippets=False)
        self._searches += 1
        self._tokens += count(self.renderer.search(results))
        return results

    def details(self, ids: Sequence[str]) -> tuple["Detail", ...]:
        """Return the details of these IDs, and add their tokens to the costs."""
        details = self.archive.details(ids)
        self._details += len(details)
        self._tokens += count(self.renderer.observations(details))
        return details

    def read(self, path: str, start_line: int, end_line: int) -> "TranscriptExcerpt":
        """Read an excerpt of a transcript, and add its tokens to the costs."""
        excerpt = self.archive.read(path, start_line, end_line)
        self._reads += 1
        self._tokens += count(self.renderer.read(excerpt))
        return excerpt

    def receipt(self, paths: Sequence[str] = ()) -> AnswerReceipt:
        """Return a receipt with the costs so far and the total tokens of the conversations at these paths."""
        return AnswerReceipt(
            read_tokens=self._tokens,
            transcript_tokens=sum(map(self.archive.conversation_tokens, paths)),
            searches=self._searches,
            details=self._details,
            reads=self._reads,
        )


_HOW: Final = re.compile(
    r"\W*(?:how (?:do|can|could|should|would|did) (?:i|we|you|one)|how to|(?:what|which) (?:is the )?commands?)\b",
    re.IGNORECASE,
)
_FIX: Final = re.compile(
    r"""\W*(?: (?:how\ (?:did|do|can)\ (?:i|we|you)|how\ to)\ (?:fix|solve|repair|resolve)
    | what\ (?:fixe[sd]|solve[sd]|repair(?:s|ed)) | (?:known\ )?fix(?:es)?\ (?:for|of) | have\ we\ seen
    | why\ (?:do|does|did)\ (?:i|we)\ (?:get|see) )\b (?:\ (?:the|this|an?))? (?:\ errors?\b:?)?
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ERROR: Final = re.compile(
    r"\b(?:\w*Error|\w*Exception|error|fatal|panic)\b:|\b(?:cannot|can['’]t|could not|no such|not found|undefined"
    r"|unknown|unrecognized|unexpected|permission denied|exit (?:code|status))\b",
    re.IGNORECASE,
)
"""Pattern for words of error messages."""
_QUOTED: Final = re.compile(r"[\"“`]([^\"”`]{8,})[\"”`]")
_FAILURE: Final = re.compile(r"\b(?:errors?|exceptions?|messages?|fail(?:s|ed)?|crash(?:es|ed)?)\b", re.IGNORECASE)
"""Pattern for words such as `error` or `failed`. A quotation in a question counts as an error only beside such a
word."""
_COMMANDS: Final = 3
"""Maximum number of commands in an answer."""
_FIXES: Final = 2
"""Maximum number of fixes in an answer."""
_ERROR_WORDS: Final = 2
"""Minimum number of key words in an error message that is searched for."""


class FoundCommands(Struct, frozen=True):
    """Commands for a task, or fixes of an error, each with the newest exchange that shows it.

    `advice` names the command that lists all commands or fixes.
    """

    found: tuple[ProjectCommand | KnownFix, ...] = ()
    details: tuple[Detail, ...] = ()
    advice: str = ""

    @property
    def is_whole(self) -> bool:
        """True if these findings are the whole answer, so that no other entries are needed."""
        return any(isinstance(each, ProjectCommand) for each in self.found)

    def findings(self, labels: Mapping[str, str]) -> list[Finding]:
        """Return one finding per command or fix, with its exchange as the source.

        `labels` maps paths to short names.
        """
        return [_finding(each, detail, labels) for each, detail in zip(self.found, self.details, strict=True)]


def find_commands(archive: MeteredArchive, question: str, filters: Filters, here: str) -> FoundCommands:
    """Return the commands or the fixes that a question asks for, or nothing if it asks for something else.

    Commands of the project `here` are preferred. With a date filter, the result is empty, because commands have no
    dates.
    """
    if filters.after is not None or filters.before is not None:
        return FoundCommands()
    lead = _HOW.match(question)
    if lead and (commands := _commands(archive, question[lead.end() :], filters.projects, here)):
        return _opened(archive, commands, f"To list all commands: palaver how {shlex.quote(commands[0].task)}")
    error = _error_of(question)
    if fixes := _fixes(archive, error, filters.projects, similar=_FIX.match(question) is not None):
        return _opened(archive, fixes, f"To list all fixes: palaver fix {shlex.quote(error)}")
    return FoundCommands()


def _commands(archive: MeteredArchive, asked: str, projects: tuple[str, ...], here: str) -> Sequence[ProjectCommand]:
    """Return the commands of one project for the task that `asked` names, or one command of each of several projects.

    All words of `asked` must name the task, the project, or a part of the command.
    """
    task, words = parse_task(asked)
    if not task:
        return ()
    store = archive.archive.store
    found = project_commands(store, task, projects or ((here,) if here else ()))
    if not found and here and not projects:
        found = project_commands(store, task)
    found = [each for each in found if words - GENERAL_WORDS <= words_of(f"{each.project} {each.command} {each.usual}")]
    first: dict[str, ProjectCommand] = {}
    for each in found:
        first.setdefault(each.project, each)
    return (list(first.values()) if len(first) > 1 else found)[:_COMMANDS]


def _fixes(archive: MeteredArchive, error: str, projects: tuple[str, ...], *, similar: bool) -> Sequence[KnownFix]:
    """Return the fixes of this error, and with `similar` those of similar ones. A quotation may be no error."""
    try:
        fixes = known_fixes(archive.archive, archive.archive.store, error, projects) if error else []
    except InvalidInput:  # The line that states the failure is too short to search for.
        return ()
    return [fix for fix in fixes if similar or fix.exact][:_FIXES]


def _error_of(question: str) -> str:
    """Return the error whose fix a question asks for, or an empty text."""
    lead, quoted, states_error = _FIX.match(question), _QUOTED.search(question), _ERROR.search(question)
    if quoted and (lead or states_error or _FAILURE.search(question)):
        error = quoted[1]
    elif lead:
        error = question[lead.end() :]
    else:
        error = question if states_error else ""
    return error.strip(" ?.:") if len(key_words(error)) >= _ERROR_WORDS else ""


def _opened(archive: MeteredArchive, found: Sequence[ProjectCommand | KnownFix], advice: str) -> FoundCommands:
    """Fetch the exchange of each command or fix, and return them together with the advice."""
    by_id = {detail.id: detail for detail in archive.details([each.id for each in found])}
    return FoundCommands(tuple(found), tuple(by_id[each.id] for each in found), advice)


def _finding(found: ProjectCommand | KnownFix, detail: Detail, labels: Mapping[str, str]) -> Finding:
    source = CitedSource(
        found.id, detail.session_id, labels[detail.path], detail.path, detail.start_line, detail.end_line
    )
    if isinstance(found, KnownFix):
        return Finding(FindingKind.FIX, f"{_remedy(found)}. The error: {found.error}", (source,), found.at)
    runs = f"{many(found.succeeded + found.failed, 'run')} in {many(found.sessions, 'session')}"
    failed = f", {found.failed:,} failed" if found.failed else ""
    mostly = f", mostly `{found.usual}`" if found.usual != found.command else ""
    project = f"{found.project}: " if found.project else ""
    return Finding(FindingKind.COMMAND, f"{project}`{found.command}`{mostly} ({runs}{failed}).", (source,), found.at)


def _remedy(fix: KnownFix) -> str:
    match fix.remedy:
        case Remedy.INSTEAD:
            return f"`{fix.worked}` worked instead of `{fix.command}`"
        case Remedy.BEFORE:
            return f"`{fix.command}` worked after `{fix.worked}`"
        case Remedy.EDIT:
            return f"`{fix.command}` worked after edits of {', '.join(f'`{file}`' for file in fix.files)}"


CITED: Final = 4
"""Maximum number of conversations that are cited if the best match is good.

Additional decisions and fixes do not count. Measured on 519 questions about 98 sessions: the correct conversation is
among the first four for 81 %, and among the first six for 83 %.
"""
_SHARE: Final = 0.6
"""Minimum score of a conversation, as a share of the best score.

On 519 questions about 98 sessions, this share keeps every correct session that is among the first four, and cites 3.2
conversations on average.
"""
_SECOND: Final = 0.1
"""Weight of the second hit of a conversation, which is added to the score of its first hit."""
_WORDS: Final = 0.15
"""Additional score of an entry with a sentence that contains all words of the question, as a share of its score."""
_WEAK: Final = 0.28
"""Minimum score of a conversation that comes before the documents."""
_WORDS_OF_KIND: Final = 0.2
"""Minimum share of the question's words in a sentence of an additional decision or fix."""


def place_of(hit: Hit) -> str:
    """Return the key by which hits are grouped: the path of a transcript, or the ID of a hit without a transcript."""
    return hit.path if has_transcript(hit) else hit.id


def scores_of(hits: Sequence[Hit]) -> dict[str, float]:
    """Return a score for each key of `place_of`: the score of its first hit, plus a part of the score of its second."""
    found: dict[str, list[float]] = {}
    for hit in hits:
        found.setdefault(place_of(hit), []).append(hit.score)
    return {name: first + _SECOND * sum(others[:1]) for name, (first, *others) in found.items()}


def best_hits(hits: Sequence[Hit], scores: Mapping[str, float]) -> Iterator[Hit]:
    """Yield the first hit of each conversation with at least `_SHARE` of the best score.

    An observation comes before an exchange without observations, which is often a request without an answer.
    """
    first: dict[str, Hit] = {}
    for hit in sorted(hits, key=lambda each: each.kind == HitKind.EXCHANGE):
        first.setdefault(place_of(hit), hit)
    best = max((scores[name] for name in first), default=0.0)
    for name in sorted(first, key=lambda each: -scores[each]):
        if scores[name] >= _SHARE * best:
            yield first[name]


def second_hits(hits: Sequence[Hit], chosen: Sequence[Hit]) -> list[Hit]:
    """Return a second hit from the conversation of the first chosen hit, if there is one."""
    known = {hit.id for hit in chosen}
    return [hit for hit in hits if chosen and hit.id not in known and place_of(hit) == place_of(chosen[0])][:1]


def related_passages(passages: Sequence[Hit], hits: Sequence[Hit]) -> list[Hit]:
    """Return the passages of documents whose score is at least `_SHARE` of the best score of a hit."""
    best = max((hit.score for hit in hits), default=0.0)
    return [hit for hit in passages if hit.score >= _SHARE * best]


def ranked(
    details: Sequence[Detail],
    claims: Mapping[str, Sequence[Claim]],
    relevance: Relevance,
    scores: Mapping[str, float],
) -> tuple[Detail, ...]:
    """Return the entries for an answer: the entries in `scores`, best first, then the additional decisions and fixes.

    Exchanges that only repeat a prompt are left out, unless all entries of `scores` are like this. Documents come after
    the conversations that match well.
    """
    shares = {one.id: max(relevance.share(text) for text in texts_of(one, claims)) for one in details}
    matches = {name: score * (1 + _WORDS * shares[name]) for name, score in scores.items() if name in shares}
    stating = [detail for detail in details if detail.kind != HitKind.EXCHANGE or _states(claims[detail.id])]
    scored = [one for one in stating if one.id in matches] or [one for one in details if one.id in matches]
    if not scored:  # another process has just removed the entries
        return ()

    def place(detail: Detail) -> tuple[bool, bool, float]:
        match = matches[detail.id]
        return match < _WEAK, detail.kind in {HitKind.DOCUMENT, HitKind.CODE}, -match

    extra = [one for one in stating if one.id not in matches and shares[one.id] >= _WORDS_OF_KIND]
    return (*sorted(scored, key=place), *extra)


def _states(claims: Sequence[Claim]) -> bool:
    return not all(claim.is_request for claim in claims)


def texts_of(detail: Detail, claims: Mapping[str, Sequence[Claim]]) -> list[str]:
    """Return the title of an entry and its sentences."""
    return [detail.observation.title, *(claim.text for claim in claims[detail.id])]


_OPENED: Final = 6
"""Maximum number of conversations whose best entry is opened. A weak answer cites all of them."""
_CONVERSATIONS: Final = (HitKind.OBSERVATION, HitKind.EXCHANGE, HitKind.MEMORY)
_DOCUMENTS: Final = 2
"""Maximum number of indexed documents that are cited."""
_LISTED: Final = 6
"""Maximum number of entries that are listed for a question that names only a time or a project."""
_SHARE_OF_KIND: Final = {False: 0.8, True: 0.4}
"""Minimum score of an additional decision or fix, as a share of the best score.

The key is True if the answer already cites its conversation.
"""


class FoundEvidence(Struct, frozen=True):
    """Entries that answer a question, best first.

    Attributes:
        details: The entries. If there are none, nothing was found.
        claims: Sentences of each entry, by its ID.
        relevance: Measure of a text's relevance to the question. Words that are rare in the entries weigh more.
        replaced: IDs of entries, each with the ID of the later entry that replaced it.
        results: Results of the search for the question. Without hits, they contain the explanation.
        absent: Words of the question that no entry of the archive contains.
        label: Whether the entries contain an answer, or are the newest entries.
        answer: Sentence of the first entry that answers the question.
        has_user_filters: True if the user restricted the search.
    """

    details: tuple[Detail, ...]
    claims: Mapping[str, Sequence[Claim]]
    relevance: Relevance
    results: Results
    replaced: Mapping[str, str] = {}
    absent: tuple[str, ...] = ()
    label: AnswerLabel = AnswerLabel.CLOSEST
    has_user_filters: bool = False
    answer: Claim | None = None


def find_evidence(
    archive: MeteredArchive, question: str, filters: Filters, here: str, also: Sequence[str] = ()
) -> FoundEvidence:
    """Return the best entries of different conversations, and the best passages of indexed documents.

    Of the best conversation, a second entry is returned. If the question asks for the latest match, as in "the latest
    decision about ...", the newest of the best entries comes first. `also` are other wordings of the question.

    Documents are searched separately, so that they do not displace conversations. If a later observation replaced an
    entry, that observation is also returned. If the question names a time, such as "last week", only entries of that
    time are returned.

    If the archive contains no word of the question, no entry is returned. Similar vectors alone do not prove that an
    entry is about the topic.

    Raises:
        InvalidInput: The question or a filter is invalid.
    """
    documents = archive.archive.store.documents.exist()
    conversations = replace(filters, kinds=_CONVERSATIONS) if documents else filters
    searches, results, newest = _search(archive, question, conversations, here, also)
    words, absent = _absent(archive, question, results)
    absent = () if newest else absent
    unknown = not newest and bool(words) and words <= set(absent)
    passages = _passages(archive, searches.question) if documents and not newest else ()
    if not (results.hits or passages) or results.empty_times or unknown:
        return FoundEvidence((), {}, Relevance(question, ()), results, absent=absent, has_user_filters=bool(filters))
    scores = scores_of((*results.hits, *passages))
    hits = [*results.hits] if newest else [*best_hits(results.hits, scores)][:_OPENED]
    hits += related_passages(passages, hits)
    extra = [] if newest else second_hits(results.hits, hits)
    for query in () if newest else searches.kinds:
        extra += _of_kind(archive.find(query).hits, [*hits, *extra])
    details = archive.details([hit.id for hit in (*hits, *extra)])
    claims = {detail.id: claims_of(detail) for detail in details}
    texts = [claim.text for detail in details for claim in claims[detail.id]]
    relevance = Relevance(question, [*(detail.observation.title for detail in details), *texts])
    label = AnswerLabel.LATEST
    if not newest:
        details = ranked(details, claims, relevance, {hit.id: scores[place_of(hit)] for hit in hits})
        if asks_for_newest(question):
            details = tuple(sorted(details, key=lambda detail: -(detail.observation.at or 0)))
        else:
            label = AnswerLabel.CLOSEST
    superseded = {hit.id: hit.superseded_by for hit in (*hits, *extra) if hit.superseded_by}
    replaced = {**superseded, **{detail.id: detail.replaced_by.id for detail in details if detail.replaced_by}}
    details = _with_replacements(archive, details, replaced)
    claims |= {detail.id: claims_of(detail) for detail in details if detail.id not in claims}
    return FoundEvidence(details, claims, relevance, results, replaced, absent, label, bool(filters))


def _search(
    archive: MeteredArchive, question: str, filters: Filters, here: str, also: Sequence[str]
) -> tuple[QuestionPlan, Results, bool]:
    """Search for the question, or list the newest entries if it names only a time, or only what the filters name.

    A time in the question becomes a filter, which is known only after the first search. The second search then uses it.

    Return the plan, the results, and True if the results are the newest entries.
    """
    if (filters or asks_for_newest(question)) and names_no_topic(question, filters.files):
        listed = replace(Query.newest(limit=_LISTED, by="session"), filters=filters)
        return QuestionPlan(listed), archive.find(listed), True
    question = without_newest(question)
    searches = plan(question, filters, here, also)
    results = archive.find(searches.question)
    if (dated := _with_time(filters, results)) == filters:
        return searches, results, False
    searches = plan(question, dated, here, also)
    newest = names_no_topic(question, [each.text for each in results.times])
    listed = replace(Query.newest(limit=_LISTED, by="session"), filters=dated)
    return searches, replace(archive.find(listed if newest else searches.question), times=results.times), newest


def _passages(archive: MeteredArchive, query: Query) -> Sequence[Hit]:
    """Return the best passages of up to `_DOCUMENTS` indexed documents and files of code."""
    wanted = replace(query.filters, kinds=(HitKind.DOCUMENT, HitKind.CODE))
    first: dict[str, Hit] = {}
    for hit in archive.find(replace(query, filters=wanted)).hits:
        first.setdefault(hit.path, hit)
    return [*first.values()][:_DOCUMENTS]


def _with_time(filters: Filters, results: Results) -> Filters:
    """Return the filters with the time range that the question names, unless they already have a time range."""
    if not results.times or filters.after is not None or filters.before is not None:
        return filters
    return replace(filters, after=results.times[0].after, before=results.times[0].before)


def _absent(archive: MeteredArchive, question: str, results: Results) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the key words of the question without its times, and those key words that the archive does not contain.

    A spell-corrected word is not absent, because the archive contains its correction.
    """
    for time in (*results.times, *results.empty_times):
        question = question.replace(time.text, " ")
    corrected = {each.word for each in results.corrections}
    words = key_words(question)
    return frozenset(words), archive.archive.unknown_words([word for word in words if word not in corrected])


def _of_kind(found: Sequence[Hit], hits: Sequence[Hit]) -> Sequence[Hit]:
    """Return the first new decision or fix in `found` whose score is high enough, or nothing.

    `hits` are the hits chosen so far. A hit from the conversation of one of them needs a lower score.
    """
    known, paths, best = {hit.id for hit in hits}, {hit.path for hit in hits}, hits[0].score if hits else 0.0
    near = [hit for hit in found if hit.id not in known and hit.score >= _SHARE_OF_KIND[hit.path in paths] * best]
    return near[:1]


def _with_replacements(
    archive: MeteredArchive, details: Sequence[Detail], replaced: Mapping[str, str]
) -> tuple[Detail, ...]:
    """Add the entries that replaced others, each directly before the entry that it replaced."""
    known = {detail.id for detail in details}
    wanted = [public for public in dict.fromkeys(replaced.values()) if public not in known]
    later = {detail.id: detail for detail in archive.details(wanted)} if wanted else {}
    found: dict[str, Detail] = {}
    for detail in details:
        newer = later.get(replaced.get(detail.id, ""))
        for each in (newer, detail):
            if each is not None:
                found.setdefault(each.id, each)
    return tuple(found.values())


def labels_of(details: Sequence[Detail]) -> dict[str, str]:
    """Return a distinct label for each path: the short session ID, or `ID#2` for the second transcript of a session."""
    labels: dict[str, str] = {}
    for detail in details:
        if has_transcript(detail) and detail.path not in labels:
            name = detail.id if detail.kind == Grouping.SESSION else detail.short_session_id
            same = sum(each.partition("#")[0] == name for each in labels.values())
            labels[detail.path] = f"{name}#{same + 1}" if same else name
    return labels
