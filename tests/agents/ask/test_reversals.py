"""Facts that are reversed later: the newest statement is the answer, and the older one is named as earlier."""

from .conftest import Ask, Said, fixed_renderer

QUESTION = "is the tide gauge connected to the harbour network"
NO = ("Is the tide gauge connected to the harbour network", "Checked: the tide gauge is not on the harbour network.", 3)
YES = ("Connect it then", "Done: the tide gauge is online in the harbour network as gauge-7.", 9)
OTHER = ("Which colour has the mooring buoy", "The mooring buoy is red, and the ferry passes it on the left.", 5)
REVERSED: tuple[tuple[str, Said, Said], ...] = (
    (QUESTION, NO, YES),
    (
        "which port does the bell server use",
        ("Which port does the bell server use", "The bell server listens on port 7070.", 2),
        ("Move the bell server", "The bell server now listens on port 7171.", 8),
    ),
    (
        "does the ferry import handle sundays",
        ("Does the ferry import handle sundays", "The ferry import handles sundays like every other day.", 2),
        ("Check the ferry import again", "The ferry import does not handle sundays: it skips the seventh column.", 8),
    ),
    (
        "do we have a backup of the chart archive",
        ("Do we have a backup of the chart archive", "There is no backup of the chart archive yet.", 2),
        ("Make one", "The backup of the chart archive runs every night on the second disk.", 8),
    ),
)


def test_the_newest_statement_is_the_answer(ask: Ask) -> None:
    """In one session or in two, the later statement comes first, and the earlier one follows with its date."""
    problems = list[str]()
    for question, older, newer in REVERSED:
        for sessions in ([[older, OTHER, newer]], [[newer], [OTHER], [older]]):
            answer = ask(question, sessions)
            texts = [finding.text for finding in answer.findings]
            is_right = len(texts) > 1 and newer[1].rstrip(".") in texts[0] and answer.findings[1].superseded_by
            if not (is_right and older[1].rstrip(".") in texts[1]):
                problems.append(f"{question} ({len(sessions)}): {texts}")

    assert not problems, "\n".join(problems)


def test_the_earlier_statement_is_named_with_both_dates(ask: Ask) -> None:
    """The page begins with the newest statement, and lists the older one under `Earlier`."""
    page = fixed_renderer().cited_answer(ask(QUESTION, [[NO, YES]]))

    assert page.index("**Best answer** (2026-04-09)") < page.index("## Earlier\n- 2026-04-03 ")
    assert "Superseded by ex-2." in page


def test_a_later_statement_about_something_else_reverses_nothing(ask: Ask) -> None:
    """A later negation about another subject, or a later report with the same result, leaves the answer as it is."""
    for later in (
        ("And the lamp", "The lamp of the pier is not painted, because the paint is late.", 9),
        ("Is it still so", "The tide gauge is still not on the harbour network.", 9),
    ):
        answer = ask(QUESTION, [[NO, later]])

        assert not any(finding.superseded_by for finding in answer.findings), later


def test_a_later_statement_of_the_same_session_is_the_answer(ask: Ask) -> None:
    """Later entries of the best entry's conversation are compared even if other hits displace them."""
    done = ("Connect it then", "Done: the tide gauge is online as gauge-7.", 9)
    buoys = [
        (f"Is buoy {n} on the harbour network", f"Checked: buoy {n} is on the harbour network.", 4) for n in range(7)
    ]

    answer = ask(QUESTION, [[NO, *buoys, done]])

    assert "the tide gauge is online" in answer.findings[0].text


def test_a_statement_that_names_the_same_cause_reverses_nothing(ask: Ask) -> None:
    question = "is the tide gauge import finished"
    older = (question, "The tide gauge import is not finished because the seventh column is empty.", 3)

    def is_reversed(text: str) -> bool:
        return any(finding.superseded_by for finding in ask(question, [[older, ("And now", text, 9)]]).findings)

    assert is_reversed("The tide gauge import is finished because the harbour sends every row.")
    assert not is_reversed("The tide gauge import finished early because of the empty seventh column.")
