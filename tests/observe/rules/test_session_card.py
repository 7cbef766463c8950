"""A summary states the request, the outcome, open items and next steps, each with its evidence."""

import pytest
from msgspec.structs import replace

from palaver.core.conversation import Exchange, Session
from palaver.core.observation import Observation
from palaver.observe.rules.rule_extractor import observe
from palaver.observe.rules.session_card import build_card

from .exchange_script import Script, session
from .test_handoff_notes import COMPACTED


def one_file(*scripts: Script) -> list[Exchange]:
    """Return these exchanges with consecutive lines, as in one transcript."""
    exchanges: list[Exchange] = []
    start = 0
    for script in scripts:
        turns = tuple(turn._replace(line=turn.line + start) for turn in script.turns)
        exchanges.append(replace(script.exchange, ordinal=len(exchanges), turns=turns))
        start += len(turns)
    return exchanges


def parts_of(exchanges: list[Exchange], about: Session) -> list[Observation]:
    return [part for exchange in exchanges for part in observe(exchange, about).observations]


def summary(*scripts: Script, title: str = "", rank: int = 4) -> Observation | None:
    about = session()
    about.title, about.title_rank = title, rank if title else -1
    exchanges = one_file(*scripts)
    return build_card(parts_of(exchanges, about), about, exchanges)


def facts(*scripts: Script) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    made = summary(*scripts)
    assert made is not None
    for fact in made.facts:
        label, _, text = fact.partition(": ")
        found.setdefault(label, []).append(text)
    return found


def footer(reply: str = "Added a footer to `page.py`, because every page needs the address.") -> Script:
    return Script().asked("Can you add a footer to all pages of the shop?").edited("page.py").said(reply)


def search() -> Script:
    return Script().asked("Add a search box to the menu").edited("menu.py").said("Added a search box to `menu.py`.")


def test_summary_of_a_session() -> None:
    """A summary has the request in the user's words and the results in order."""
    said = facts(footer(), search())

    assert said["Asked"] == ["Can you add a footer to all pages of the shop?"]
    assert len(said["Outcome"]) == 2
    assert "search box" in said["Outcome"][1]


def test_every_fact_has_evidence() -> None:
    """Each fact of a summary has its quote, which occurs on its line."""
    ended = search().said("The search box still needs a label for screen readers.")
    made = summary(footer(), ended)
    texts = {turn.line: turn.text for exchange in one_file(footer(), ended) for turn in exchange.turns}

    assert made is not None
    assert len(made.evidence) == len(made.facts)
    assert all(proof.quote in texts[proof.start_line] for proof in made.evidence)


def test_a_result_is_the_agents() -> None:
    """An outcome is a change that the agent states, and no order, cause or limit."""
    asked = Script().asked("Add a search box to the menu").edited("menu.py")
    assert "Outcome" not in facts(asked.said("The cause: `menu.py` only accepts three entries. It is ready to merge."))


def test_a_commit_without_a_result_is_no_outcome() -> None:
    """A commit whose call has no result is no outcome, because nothing proves it."""
    edited = Script().asked("Add a search box to the menu").edited("menu.py")
    committed = edited.ran("git commit -m 'Find terms from each page'", "1 file changed")
    message = "Find terms from each page"

    assert facts(committed)["Outcome"] == [message]
    made = summary(Script(committed.turns[:-1]))
    assert made is None or not any(message in fact for fact in made.facts)


def test_a_single_observation_needs_no_card() -> None:
    """A session with one observation has a card only if the card states a result, or more than the observation."""
    assert facts(footer())["Outcome"] == ["Added a footer to page.py, because every page needs the address"]
    assert summary(Script().asked("Where is the footer of the shop?").said("In the shop.")) is None
    assert facts(footer("Added a footer to `page.py`. It is ready to merge."))["Open"]


def test_result_of_a_request_is_not_repeated() -> None:
    """An outcome that only repeats the request is replaced by what was changed."""
    plan = Script().asked("Implement the following plan:\n\n# Plan: Show a footer on all pages").edited("page.py")
    said = facts(plan.said("Added a footer with the address to `page.py`."), search())

    assert said["Asked"] == ["Show a footer on all pages"]
    assert said["Outcome"][0] == "Added a footer with the address to page.py."


def test_question_at_the_end_is_open() -> None:
    """A question that nobody answered is an open item, and so is a short sentence, with the one before it."""
    said = facts(footer("Added a footer to `page.py`. Not pushed yet. Do you want a footer in the print view too?"))

    assert said["Open"] == [
        "Question to the user: Do you want a footer in the print view too?",
        "Not pushed yet. Added a footer to page.py.",
    ]


def test_rewritten_result_is_no_outcome() -> None:
    """A change whose files a later change rewrote is not listed. A repair leaves it valid."""
    first = search()
    again = Script().asked("Add a dark search box to the menu").edited("menu.py").said("Added the dark search box.")
    repaired = Script().asked("Fix the colour of the menu").edited("menu.py").said("Fixed the colour in `menu.py`.")

    assert not any("Added a search box" in text for text in facts(first, again, footer())["Outcome"])
    assert any("search box" in text for text in facts(first, repaired, footer())["Outcome"])


def test_work_without_a_name_is_no_outcome() -> None:
    """The title of the observation names nothing, so it says nothing about the session."""
    unnamed = Script().asked("It is still grey, can you look again?").edited("menu.py").said("Fixed in the live menu.")

    assert [part.title for part in parts_of([unnamed.exchange], session())] == ["Fixed in the live menu"]
    assert facts(footer(), unnamed)["Outcome"] == facts(footer())["Outcome"]


def test_causes_and_pitfalls() -> None:
    """A card names the causes and the pitfalls that a reply states, also where nothing changed."""
    asked = Script().asked("Why is the footer of `page.py` empty?")
    said = facts(
        footer(),
        asked.said(
            "The root cause is that `load_address` returns before `address.json` is read.\n\n"
            "`page.py` must never be cached, because the address of the shop depends on the region."
        ),
    )

    assert said["Cause"] == ["The root cause is that load_address returns before address.json is read."]
    assert said["Gotcha"] == ["page.py must never be cached, because the address of the shop depends on the region."]


def test_last_decision_on_a_subject_is_in_force() -> None:
    """A later decision of the user replaces an earlier one on the same subject."""
    question = "Which database should keep the prices of the shop?"
    said = facts(footer().chose((question, "SQLite")), search().chose((question, "PostgreSQL")))

    assert said["Decided"] == [f"{question} → PostgreSQL"]


def test_a_session_without_result_has_no_summary() -> None:
    """A greeting has no summary."""
    assert summary(Script().asked("hi").said("Hello, how can I help?")) is None


def test_compaction_summary_at_the_end() -> None:
    """A session that ends with a compaction summary reports its current work, open items and next step."""
    said = facts(Script().asked("Hm.").compacted(COMPACTED))

    assert said["Outcome"] == [
        "I was writing test_footer.py for the print view. (from the agent's compaction summary, line 2)"
    ]
    assert said["Open"] == ["Test the footer in the print view (from the agent's compaction summary, line 2)"]
    assert said["Next"] == [
        "Run the tests of the print view with pytest -k print. (from the agent's compaction summary, line 2)"
    ]


def test_request_of_a_continued_session() -> None:
    """A transcript that begins with a compaction summary takes the request from it."""
    continued = Script().compacted(COMPACTED).edited("page.py").said("Added a footer to `page.py`, with its tests.")

    assert facts(continued, search())["Asked"][0].startswith("The user asked for a footer on every page of the shop.")


def test_title_is_the_agents_own() -> None:
    """The agent's own title is used, unless it is a prompt, a question or a single word."""
    titles = {
        title: made.title
        for title in ("Footer of the museum shop", "Test", "Is there a footer?")
        if (made := summary(footer(), search(), title=title))
    }

    assert titles["Footer of the museum shop"] == "Session: Footer of the museum shop"
    assert (
        titles["Test"]
        == titles["Is there a footer?"]
        == ("Session: Added a footer to page.py, because every page needs the address")
    )


def test_a_title_by_a_model_claims_only_what_was_done() -> None:
    """Without a change, the request is the title. A title that is no claim of a model stays."""
    asked = Script().asked("Add a footer to the print view").said("It needs a font. Which font should the footer have?")
    claimed, named = summary(asked, title="Shop: Footer added", rank=1), summary(asked, title="Shop: Footer added")
    done = summary(footer(), search(), title="Shop: Footer added", rank=1)

    assert claimed is not None
    assert claimed.title == "Session: Add a footer to the print view"
    assert named is not None
    assert done is not None
    assert named.title == done.title == "Session: Shop: Footer added"


def test_title_is_the_main_commit() -> None:
    """A session with commits has the subject of its main commit as title, not one detail of the work."""
    commit = Script().asked("commit this").ran("git commit -m 'Add a footer with the address'").said("Committed.")
    tests = Script().asked("commit the rest").ran("git commit -m 'test: cover the footer'").said("Committed.")
    made = summary(footer(), search(), commit, tests)

    assert made is not None
    assert made.title == "Session: Add a footer with the address"


def test_a_commit_of_tests_is_no_title() -> None:
    """A session whose only commit is of tests has its largest result as title."""
    tests = Script().asked("commit the tests").ran("git commit -m 'test: cover the footer'").said("Committed.")
    made = summary(footer(), search(), tests)

    assert made is not None
    assert "cover the footer" not in made.title


def test_least_trusted_origin() -> None:
    """A summary that quotes a reply after a web fetch is external, even if its observations are not."""
    fetched = (
        Script().asked("ok").ran("curl https://example.com/shop").said("The page still needs a footer of its own.")
    )
    made = summary(footer(), search(), fetched)
    assert made is not None
    assert made.origin == "external"


@pytest.mark.parametrize(
    ("command", "ending"), [("pytest -q", "(last check failed)"), ("git push origin main", "(last command failed)")]
)
def test_title_names_a_failure_at_the_end(command: str, ending: str) -> None:
    """The title of a session that ended with a failed command does not read like a success."""
    found = summary(footer(), search().ran(command, "error: failed", failed=True))
    passed = summary(footer(), search().ran(command, "error: failed", failed=True).ran(command, "ok"))

    assert found is not None
    assert passed is not None
    assert found.title == f"{passed.title} {ending}"


def test_a_commit_of_documents_is_a_title() -> None:
    """Documents can be the result of a session, although another commit has priority over them."""
    documents = Script().asked("commit this").ran("git commit -m 'docs: explain the footer'").said("Committed.")
    made = summary(footer(), search(), documents)

    assert made is not None
    assert made.title == "Session: docs: explain the footer"
