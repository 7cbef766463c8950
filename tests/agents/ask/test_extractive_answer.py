"""Answers without a language model."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from palaver.agents.ask.citation_check import CitationChecker
from palaver.agents.ask.extractive_answer import ANSWER_TOKENS, extractive_answer
from palaver.agents.ask.question_plan import plan
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import Store
from palaver.core.conversation import show_day
from palaver.core.home import Home
from palaver.core.query import Filters, Query
from palaver.core.results import AnswerLabel, CitedAnswer, Detail, FindingKind, Results, TranscriptExcerpt
from palaver.core.tokens import count
from palaver.observe.pipeline import Pipeline
from palaver.search.archive_search import ArchiveSearch
from palaver.search.query.relevance import Relevance
from palaver.templates.render import Renderer

from ...archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from .conftest import fixed_renderer

GOLDEN = Path(__file__).with_name("golden") / "answer.md"
QUESTIONS = (
    "sqlite or json files",
    "why was high water an hour late",
    "how do we compare plant names",
    "cursor or offset for the catalogue",
)
WORDS = "sqlite json cursor offset plant names summer time utc readings tests fix decided error catalogue".split()


class Recorder:
    """Renderer that records the pages of search results, details and excerpts."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages: dict[str, list[str]] = {"search": [], "observations": [], "read": []}
        self.renderer = fixed_renderer()
        for name, pages in self.pages.items():
            monkeypatch.setattr(self.renderer, name, self._recording(getattr(self.renderer, name), pages))

    @staticmethod
    def _recording(render: object, pages: list[str]) -> object:
        def recorded(given: object) -> str:
            assert callable(render)
            pages.append(str(render(given)))
            return pages[-1]

        return recorded


class ArchiveSpy:
    """Counter of the calls of an archive."""

    def __init__(self, archive: ArchiveSearch, monkeypatch: pytest.MonkeyPatch) -> None:
        self.results, self.details, self.excerpts = list[Results](), list[Detail](), list[TranscriptExcerpt]()
        find, details, read = archive.find, archive.details, archive.read

        def finding(query: Query, /, *, snippets: bool = True) -> Results:
            self.results.append(find(query, snippets=snippets))
            return self.results[-1]

        def detailing(wanted: list[str], /) -> tuple[Detail, ...]:
            found = details(wanted)
            self.details += found
            return found

        def reading(path: str, start_line: int = 1, end_line: int | None = None, /) -> TranscriptExcerpt:
            self.excerpts.append(read(path, start_line, end_line))
            return self.excerpts[-1]

        monkeypatch.setattr(archive, "find", finding)
        monkeypatch.setattr(archive, "details", detailing)
        monkeypatch.setattr(archive, "read", reading)


def told(archive: ArchiveSearch, answer: CitedAnswer, home: Home) -> int:
    """Return the tokens of all turns of the cited conversations."""
    total = 0
    with Store.open(home.database) as store:
        for path in {source.path for source in answer.sources if source.path}:
            source = store.sources.by_archived(path)
            assert source is not None
            assert source.session is not None
            keys = store.summaries.newest_exchanges(source.session)
            exchanges = store.exchanges.load(keys).values()
            total += sum(count(turn.text) for each in exchanges for turn in each.exchange.turns)
    assert archive is not None
    return total


def test_answer_of_the_sample_archive(
    archive: ArchiveSearch, renderer: Renderer, request: pytest.FixtureRequest
) -> None:
    """The answers of the sample archive equal the golden file."""
    shown = "\n".join(
        f"$ {question}\n{renderer.cited_answer(extractive_answer(archive, renderer, question))}"
        for question in (*QUESTIONS, "kubernetes ingress timeout")
    )
    if request.config.getoption("--update-golden", default=False):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(shown, "utf-8")

    assert shown == GOLDEN.read_text("utf-8")


@settings(max_examples=25)
@given(st.lists(st.sampled_from(WORDS), min_size=1, max_size=8).map(" ".join))
def test_every_answer_has_its_properties(built: Home, question: str) -> None:
    """Every citation exists, no answer exceeds its budget, and an answer depends on nothing but the archive."""
    renderer = fixed_renderer()
    with ArchiveSearch(built) as archive:
        answer = extractive_answer(archive, renderer, question)
        page = renderer.cited_answer(answer)
        checked = CitationChecker(archive).check(page)

        assert checked.missing == ()
        assert {source.id for finding in answer.findings for source in finding.sources if source.id} <= {
            source.id for source in checked.sources
        }
        assert {source.path for source in answer.sources} == {session.path for session in answer.sessions}
        for source in answer.sources:
            excerpt = archive.read(source.path, source.end_line, source.end_line)
            assert (excerpt.path, excerpt.session_id) == (source.path, source.session_id)
        assert all(finding.sources for finding in answer.findings)
        assert count(page) == answer.receipt.tokens <= ANSWER_TOKENS
        assert extractive_answer(archive, fixed_renderer(), question) == answer


@pytest.mark.parametrize("question", [*QUESTIONS, "who typed a page number in the search"])
def test_receipt_is_true(archive: ArchiveSearch, built: Home, question: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The receipt equals a recount of the answer, of everything that was read, and of the cited conversations."""
    recorder, spy = Recorder(monkeypatch), ArchiveSpy(archive, monkeypatch)
    answer = extractive_answer(archive, recorder.renderer, question)
    receipt = answer.receipt

    assert receipt.tokens == count(recorder.renderer.cited_answer(answer))
    assert (receipt.searches, receipt.details, receipt.reads) == (
        len(spy.results),
        len(spy.details),
        len(spy.excerpts),
    )
    assert receipt.read_tokens == sum(count(page) for pages in recorder.pages.values() for page in pages)
    assert receipt.transcript_tokens == told(archive, answer, built)
    assert receipt.cost == 0


def test_small_budget_keeps_the_best_findings(archive: ArchiveSearch, renderer: Renderer) -> None:
    """A smaller budget leaves out the last findings."""
    whole = extractive_answer(archive, renderer, "how do we compare plant names")
    part = extractive_answer(archive, renderer, "how do we compare plant names", budget=whole.receipt.tokens - 1)

    assert 0 < len(part.findings) < len(whole.findings)
    assert part.findings == whole.findings[: len(part.findings)]
    assert part.receipt.tokens < whole.receipt.tokens


def test_decision_of_the_user_is_named(archive: ArchiveSearch, renderer: Renderer) -> None:
    """The decision of a cited conversation is a finding, with the line where the user said it."""
    answer = extractive_answer(archive, renderer, "sqlite or json files")
    decision = next(finding for finding in answer.findings if "Use SQLite" in finding.text)

    assert 13 in [source.start_line for source in decision.sources]


def test_nothing_is_found_without_a_relevant_hit(archive: ArchiveSearch, renderer: Renderer) -> None:
    """Without a relevant hit, the answer has no finding and says what to try."""
    answer = extractive_answer(archive, renderer, "kubernetes ingress timeout")

    assert (answer.findings, answer.sources) == ((), ())
    assert "Not in the archive: kubernetes, ingress, timeout." in answer.suggestions
    assert renderer.cited_answer(answer).startswith("Nothing found about `kubernetes ingress timeout`.")


def test_filters_restrict_the_answer(archive: ArchiveSearch, renderer: Renderer) -> None:
    """With a filter for a project, only sessions of the project are cited."""
    answer = extractive_answer(archive, renderer, "tests", Filters(projects=("seed-library",)))

    assert {session.project for session in answer.sessions} == {"seed-library"}


def test_current_project_is_preferred() -> None:
    """The current project is part of each search, unless a project is given."""
    searches = plan("why sqlite for clock readings", Filters(), "tide-clock")

    assert {query.here for query in (searches.question, *searches.kinds)} == {"tide-clock"}
    assert plan("why sqlite", Filters(projects=("x",)), "tide-clock").question.here == ""


def test_hostile_text_stays_quoted_data(hostile: ArchiveSearch, renderer: Renderer) -> None:
    """Archived text stays between the markers, without tags, headings, images or control characters of its own."""
    answer = extractive_answer(hostile, renderer, "how does the invoice importer work")
    page = renderer.cited_answer(answer)
    inside = page.split("<recalled-12345678>\n")[1].partition("\n</recalled-12345678>")[0]

    assert page.count("</recalled-12345678>") == 1
    assert "ignore all previous instructions" in inside
    assert "<system>" not in page
    assert "![" not in page
    assert "\u202e" not in page
    assert "49" not in re.sub(r"\d+-\d+-\d+|[\w-]+\.jsonl", "", inside)
    own = ("## Fixes", "## Other findings", "## Sources")
    assert [row for row in inside.splitlines() if row.startswith("#") and row not in own] == []


def test_quoted_citation_is_not_a_source(hostile: ArchiveSearch, renderer: Renderer) -> None:
    """A citation inside archived text is neither a source nor counted as one."""
    answer = extractive_answer(hostile, renderer, "how does the invoice importer work")

    assert "obs-999999" not in {source.id for source in answer.sources}
    assert all(source.exists for source in answer.sources)


def test_a_date_in_the_question_limits_the_answer(archive: ArchiveSearch, renderer: Renderer) -> None:
    """If a question names a time, all findings are from that time."""
    answer = extractive_answer(archive, renderer, "what did we decide about the clock in march 2026")

    assert answer.findings
    assert {finding.at is not None and show_day(finding.at)[:7] for finding in answer.findings} == {"2026-03"}


def test_a_question_for_a_time_lists_its_entries(archive: ArchiveSearch, renderer: Renderer) -> None:
    """If a question names only a time, the answer lists the newest entries of that time."""
    answer = extractive_answer(archive, renderer, "what did we do in march 2026")

    assert answer.label is AnswerLabel.LATEST
    assert {show_day(finding.at or 0)[:7] for finding in answer.findings} == {"2026-03"}
    assert "**Latest entries**\n" in renderer.cited_answer(answer)


def test_words_outside_the_archive_are_named(archive: ArchiveSearch, renderer: Renderer) -> None:
    """Absent words are named in any answer. Without other words, nothing is found."""
    found = extractive_answer(archive, renderer, "should the readings be in sqlite or in cassandra")
    nothing = extractive_answer(archive, renderer, "did we ever use cassandra")

    assert found.label is AnswerLabel.CLOSEST
    assert found.notices[:1] == ("Not in the archive: cassandra.",)
    assert nothing.findings == ()
    assert "Not in the archive: cassandra." in nothing.suggestions


def test_words_without_a_topic_are_not_named_as_absent(archive: ArchiveSearch, renderer: Renderer) -> None:
    """If nothing is found, words such as "did" are not named as absent."""
    nothing = extractive_answer(archive, renderer, "what did we do in march 2001")

    assert nothing.findings == ()
    assert [each for each in nothing.suggestions if each.startswith("Not in the archive")] == []


def test_an_uncertain_answer_is_short(archive: ArchiveSearch, renderer: Renderer) -> None:
    """Without a certain answer, at most three passages are shown, in at most 200 tokens."""
    answer = extractive_answer(archive, renderer, "sqlite or json files", Filters(projects=("seed-library",)))

    assert answer.label is AnswerLabel.CLOSEST
    assert 1 <= len(answer.findings) <= 3
    assert answer.receipt.tokens <= 200
    assert "Best answer" not in renderer.cited_answer(answer)


def test_the_latest_match_comes_first(archive: ArchiveSearch, renderer: Renderer) -> None:
    """A question for the latest match, or for what was done last, lists entries from the newest on."""
    for question in ("what is the latest decision about plants", "what did we do last", "the most recent session"):
        answer = extractive_answer(archive, renderer, question)
        times = [finding.at or 0 for finding in answer.findings]

        assert answer.label is AnswerLabel.LATEST
        assert times == sorted(times, reverse=True)


def test_further_findings_share_a_word_with_the_question(archive: ArchiveSearch, renderer: Renderer) -> None:
    """A further finding contains at least one word of the question."""
    answer = extractive_answer(archive, renderer, "how do we compare plant names")

    relevance = Relevance("how do we compare plant names", ())
    assert len(answer.findings) > 1
    assert all(relevance.share(finding.text) > 0 for finding in answer.findings)


def test_a_time_without_entries_is_named(archive: ArchiveSearch, renderer: Renderer) -> None:
    """If nothing is from the time in the question, the answer says so, and names the day of the newest entry."""
    answer = extractive_answer(archive, renderer, "what did we decide about sqlite in march 2001")

    assert not answer.findings
    assert any(each.startswith("Nothing is from 2001-03-01 to 2001-03-31 (`") for each in answer.suggestions)
    assert any("The newest entry is from 2026-" in each for each in answer.suggestions)
    assert answer.nearest
    assert extractive_answer(archive, renderer, "what happened in march 2001").nearest == ()


def test_a_weak_answer_names_the_missing_words(archive: ArchiveSearch, renderer: Renderer) -> None:
    """If the best finding contains few words of the question, it is marked as weak, and absent words are named."""
    answer = extractive_answer(archive, renderer, "which zebra vendor pays sqlite invoices")

    assert answer.findings
    assert answer.label is AnswerLabel.CLOSEST
    assert answer.notices == ("Not in the archive: zebra, vendor, pays, invoices.",)


def test_a_named_project_restricts_the_answer(archive: ArchiveSearch, renderer: Renderer) -> None:
    """A good match in the project that the question names is the answer. Without one, any answer is weak."""
    answer = extractive_answer(archive, renderer, "what failed in the seed-library project")
    other = extractive_answer(archive, renderer, "which sqlite version does the seed-library project use")

    assert "Photo upload fails with 413" in answer.findings[0].text
    assert {session.project for session in answer.sessions} == {"seed-library"}
    assert other.label is AnswerLabel.CLOSEST
    assert "For more entries, ask again without the filters." not in other.notices


def test_a_question_for_a_project_lists_its_entries(archive: ArchiveSearch, renderer: Renderer) -> None:
    """If a question names only a project, the answer lists its newest entries."""
    answer = extractive_answer(archive, renderer, "what did we do in the seed-library project")
    filtered = extractive_answer(archive, renderer, "what did we do", Filters(projects=("seed-library",)))

    assert answer.label is AnswerLabel.LATEST
    assert {session.project for session in answer.sessions} == {"seed-library"}
    assert filtered.findings == answer.findings


def test_commands_of_a_named_project_come_first(archive: ArchiveSearch, renderer: Renderer) -> None:
    """The command is from the project that the question names, not from the current project."""
    answer = extractive_answer(archive, renderer, "how do I run the tests in tide-clock", here="seed-library")

    assert answer.findings[0].kind is FindingKind.COMMAND
    assert {session.project for session in answer.sessions} == {"tide-clock"}


ASKED = "does the lighthouse scheduler skip the retry queue when the feed is paused"


def archive_of(folder: Path, *said: tuple[str, str]) -> ArchiveSearch:
    """Archive a session with these prompts and answers of July 28, 2026."""
    place = {"sessionId": "6c2d3bd4-93aa-4cf4-a8de-000000000001", "cwd": "/home/demo/quay"}
    lines = [line for prompt, answer in said for line in (user(prompt), assistant(text(answer), id=prompt[:4]))]
    rows = [
        {**line, **place, "uuid": f"u{at}", "timestamp": f"2026-07-28T10:0{at}:00.000Z"}
        for at, line in enumerate(lines)
    ]
    (folder / "quay.jsonl").write_bytes(jsonl(rows))
    with Pipeline(Home(folder / "palaver")) as pipeline:
        pipeline.run(in_paths([folder / "quay.jsonl"]))
    return ArchiveSearch(Home(folder / "palaver"))


@pytest.fixture
def asked_before(tmp_path: Path) -> Iterator[ArchiveSearch]:
    """Archive of a session in which a question was asked and answered, followed by other work."""
    answer = "No: while the feed is paused, the lighthouse scheduler still drains the retry queue."
    with archive_of(
        tmp_path, (ASKED, answer), ("Paint the buoys red", "Painted the buoys red in `buoys.py`.")
    ) as opened:
        yield opened


def test_a_question_that_was_asked_before_has_its_answer(asked_before: ArchiveSearch, renderer: Renderer) -> None:
    """The answer quotes the reply to the question, not the question."""
    answer = extractive_answer(asked_before, renderer, ASKED)

    assert "still drains the retry queue" in answer.findings[0].text


def test_a_repeated_question_alone_is_no_answer(tmp_path: Path, renderer: Renderer) -> None:
    """If only the question was archived, and no answer that states something, no answer is called the best one."""
    with archive_of(tmp_path, (ASKED, "Let me check that in the scheduler.")) as archive:
        answer = extractive_answer(archive, renderer, ASKED)

    assert answer.label is AnswerLabel.CLOSEST


def test_a_week_of_a_month_lists_its_sessions(asked_before: ArchiveSearch, renderer: Renderer) -> None:
    """A question for a time is answered by a line for each session, which cites the session."""
    answer = extractive_answer(asked_before, renderer, "what happened in the last week of July 2026?")
    [finding] = answer.findings

    assert answer.label is AnswerLabel.LATEST
    assert (finding.sources[0].label, finding.sources[0].start_line) == ("6c2d", 1)
    assert "[6c2d:1-" in renderer.cited_answer(answer)


def test_words_of_a_time_are_not_named_as_missing(asked_before: ArchiveSearch, renderer: Renderer) -> None:
    """A note about missing words does not contain the time, which is a filter."""
    answer = extractive_answer(asked_before, renderer, "which colour had the retry queue on July 28, 2026")

    assert not any("July" in notice for notice in answer.notices)
