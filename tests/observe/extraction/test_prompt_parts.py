"""Each line of a prompt has the origin that its form and context show."""

from palaver.observe.extraction.prompt_parts import MASK, PartOrigin, prompt_parts, typed_text

from ...cases import for_each


def origins(prompt: str) -> list[str]:
    return [part.origin.value for part in prompt_parts(prompt)]


@for_each(
    "prompt, expected",
    [
        ("Fix it\n```\nx = 1\n```\nthanks", ["typed", "code", "code", "code", "typed"]),
        ("What is this?\n\ndef f():\n    # always close\n    pass\n\nthanks", ["typed", *["code"] * 3, "typed"]),
        ("# always close the pool\npool = make()\n\nwhy?", ["code", "code", "typed"]),
        ("I get\n2026-01-02 10:00:00 WARN never\nmore text\n\nwhy?", ["typed", "log", "log", "typed"]),
        ("> Hi\n> never\n\nanswer her", ["quotation", "quotation", "typed"]),
        ('He sent\n\n"Never do it.\nAlways ask."\n\nTrue?', ["typed", "quotation", "quotation", "typed"]),
        ("The docs say\nAlways ask.\n\nNever guess.", ["typed", "quotation", "quotation"]),
        ("Look at this comment\n\nAlways ask.", ["typed", "quotation"]),
        ("I need these:\nfirst one\n\nthanks", ["typed", "document", "typed"]),
        ("Check\n# Rules\nAlways ask.\n\nNever guess.", ["typed", "document", "document", "document"]),
        ("- one\n- two\n\nthree", ["document", "document", "typed"]),
        ("<system-reminder>\nAlways ask.\n</system-reminder>\nwhy?", ["program", "program", "program", "typed"]),
        ("Stop hook feedback:\nAlways ask.", ["program", "program"]),
        ("Subject: deploys\n\nNever deploy.", ["quotation", "quotation"]),
        ("You are a reviewer.\nAlways ask.", ["agent", "agent"]),
        ("Implement the following plan:\n\nAlways ask.", ["agent", "agent"]),
        ("[image/png, 30 KB]\nAlways ask.", ["typed", "typed"]),
    ],
)
def test_origins(prompt: str, expected: list[str]) -> None:
    """Typed lines are told from code, logs, quotations, documents, programs and agents."""
    assert origins(prompt) == expected


def test_long_tagged_block_is_from_a_program() -> None:
    """A block in tags is from a program until its closing tag, however long it is."""
    rows = ["<hook-output>", *["row"] * 500, "", "Always ask.", "</hook-output>", "why?"]

    assert origins("\n".join(rows))[-3:] == ["program", "program", "typed"]


def test_hard_wrapped_paragraph_is_a_document() -> None:
    """Lines filled to an equal width come from a document or an e-mail."""
    line = "the listener waits for the clean-up, which can leak when the peer is gone and"
    assert origins("\n".join([line] * 4)) == ["document"] * 4
    assert origins("short line\nanother one") == [PartOrigin.TYPED] * 2


def test_quotations_and_attributed_words_are_masked() -> None:
    """A masked line keeps its length, and the words of others are hidden in it."""
    line = 'Add the hint "Never share it", please.'
    assert typed_text(line) == line.replace('"Never share it"', MASK * 16)
    said = typed_text("Mia says: never guess")
    assert said.startswith("Mia says")
    assert "never" not in said
    assert typed_text("I said never guess") == "I said never guess"
    assert "never" not in typed_text("Tom Miller: never guess")
    assert typed_text("Also: never guess") == "Also: never guess"
