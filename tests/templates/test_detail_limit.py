"""Tests of the token limit of an entry in layer 2."""

from hypothesis import example, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from palaver.core.conversation import Exchange, Kind, Span, Speaker, Turn
from palaver.core.observation import DETAIL_TOKENS, Evidence, Observation
from palaver.core.tokens import count
from palaver.search.present.details import exchange_observation
from palaver.templates.render import Renderer

from .samples import detail

RENDERER, AT_SHELL = Renderer(), Renderer(at_shell=True, budget=600)
WORDS = st.integers(0, 300).map(lambda many: "The token of the session expires, and nobody asks. " * (many // 9))
TEXTS = st.one_of(WORDS, st.text(max_size=1_200), st.integers(0, 4_000).map("x".__mul__))
LISTS = st.integers(0, 40).map(lambda many: tuple(f"src/some/long/folder/of_names/{one}.py" for one in range(many)))


@st.composite
def observations(draw: st.DrawFn) -> Observation:
    facts = tuple(draw(st.lists(TEXTS, max_size=9)))
    proofs = tuple(Evidence(number + 3, number + 4, text[:240]) for number, text in enumerate(facts))
    return replace(
        detail().observation,
        title=draw(TEXTS),
        subtitle=draw(TEXTS),
        narrative=draw(TEXTS),
        facts=facts,
        concepts=draw(LISTS),
        files_read=draw(LISTS),
        files_modified=draw(LISTS),
        evidence=(*proofs, Evidence(9, 9, draw(TEXTS))),
    )


@given(observations(), TEXTS)
@settings(max_examples=20, deadline=None)
def test_an_observation_keeps_to_its_limit(one: Observation, name: str) -> None:
    """An observation of any size is rendered within the token limit, including headings and labels."""
    whole = replace(detail(), observation=one, session_title=name, also_in=("5e0c",) * 5)

    assert count(RENDERER.observations([whole])) <= DETAIL_TOKENS
    assert count(AT_SHELL.observations([whole, whole])) <= 600
    assert one.tokens <= DETAIL_TOKENS


@example("src/a_1.py:7 " * 40, "x_1 = f(y[2]); " * 100)
@given(TEXTS, TEXTS)
@settings(max_examples=15, deadline=None)
def test_an_exchange_keeps_to_its_limit(prompt: str, answer: str) -> None:
    """An exchange of any length is rendered within the token limit."""
    turns = (Turn(3, Speaker.HUMAN, Kind.PROMPT, prompt), Turn(4, Speaker.ASSISTANT, Kind.PROSE, answer))
    shown = exchange_observation(Exchange(0, Span(3, 4, 0, 1), turns, None, None))

    assert count(RENDERER.observations([replace(detail(), kind="exchange", observation=shown)])) <= DETAIL_TOKENS


def test_a_truncated_observation_keeps_its_first_facts() -> None:
    """A long narrative and eight facts are truncated at the end, and the page has the number of omitted parts."""
    facts = tuple(f"Fact {number}: " + "the session expires. " * 14 for number in range(8))
    proofs = tuple(Evidence(number, number, fact[:60]) for number, fact in enumerate(facts, 3))
    one = replace(detail().observation, subtitle="", narrative="It was seen again. " * 47, facts=facts, evidence=proofs)
    page = RENDERER.observations([replace(detail(), observation=one)])

    assert "It was seen again." in page
    assert "Fact 0" in page
    assert "Fact 7" not in page
    assert "> " not in page
    assert "omitted; use response_format json to see all.]" in page
    assert "omitted; use --json to see all.]" in AT_SHELL.observations([replace(detail(), observation=one)])


def test_a_user_sees_whole_entries_within_the_budget() -> None:
    """At the shell, an entry is shortened only if all entries together exceed the budget, which the user chooses."""
    facts = tuple(f"Fact {number}: " + "the session expires. " * 14 for number in range(24))
    long = replace(detail(), observation=replace(detail().observation, facts=facts))
    whole = Renderer(at_shell=True).observations([long])

    assert "omitted" not in whole
    assert "Fact 23" in whole
    assert count(whole) > 3 * DETAIL_TOKENS
    for budget in (600, 1_200):
        page = Renderer(at_shell=True, budget=budget).observations([long])
        assert "parts omitted; use --json to see all.]" in page
        assert budget - 150 < count(page) <= budget


def test_entries_are_truncated_independently() -> None:
    """A long entry is truncated without shortening a short entry beside it."""
    long = replace(detail(), observation=replace(detail().observation, narrative="It was seen again. " * 200))
    page = RENDERER.observations([long, detail()])

    assert count(page) <= 2 * DETAIL_TOKENS
    assert page.count(" omitted; ") == 1
    assert "> 12: let us take JWT\n\n---" in page.split(" omitted; ")[1]
