"""Each kind of evidence has its documented weight."""

from palaver.core.observation import ObservationType
from palaver.observe.rules.classification import TypeSignals, classify, weigh_types

from ...cases import for_each


def signs(title: str = "", **more: object) -> TypeSignals:
    given: dict[str, object] = {"request": "", "conclusion": "", "writes": ("src/a.py",), "changed": True, **more}
    return TypeSignals(titles=[title], **given)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


@for_each(
    "title, expected",
    [
        ("feat(api): rework", ObservationType.FEATURE),
        ("fix!: rework", ObservationType.BUG_FIX),
        ("perf: rework", ObservationType.REFACTOR),
        ("ci: rework", ObservationType.CONFIG),
        ("docs: rework", ObservationType.GENERAL),
        ("test: rework", ObservationType.TEST),
        ("Clean up the cart", ObservationType.REFACTOR),
        ("Fixes the cart", ObservationType.BUG_FIX),
        ("Add unit tests for the cart", ObservationType.TEST),
        ("Create a release 1.2", ObservationType.CONFIG),
        ("Address review findings", ObservationType.BUG_FIX),
        ("Card layout cleanup", ObservationType.REFACTOR),
        ("Whatever this is", ObservationType.FEATURE),
    ],
)
def test_title_determines_the_type(title: str, expected: ObservationType) -> None:
    """A conventional prefix or the first verb determines the type. Without either, a change has the type `feature`."""
    writes = ("tests/test_cart.py",) if "tests" in title else ("src/a.py",)

    assert classify(signs(title, writes=writes)) is expected


def test_changed_documents_alone_are_general() -> None:
    """A change that affects only documents has the type `general`."""
    assert (
        classify(signs("Whatever this is", writes=("AGENTS.md", ".agents/product-boundary.md")))
        is ObservationType.GENERAL
    )


def test_errors_as_a_subject_do_not_make_a_fix() -> None:
    """A plan about error handling has the type `feature`."""
    assert (
        classify(signs("Add an error page", request="errors: the page fails silently", plan=True))
        is ObservationType.FEATURE
    )


def test_complaint_and_repair_make_a_fix() -> None:
    """A complaint followed by a change has the type `bug-fix`."""
    weights = weigh_types(signs(request="the total is wrong", conclusion="The fix was to round late"))

    assert weights[ObservationType.BUG_FIX] == 5
    assert weights[ObservationType.FEATURE] == 2


def test_looking_is_debugging_or_learning() -> None:
    """Without a change, a complaint has the type `debugging` and any other exchange `learning`."""
    crashed, asked = (signs(request=prompt, writes=(), changed=False) for prompt in ("it crashes", "the cart"))

    assert classify(crashed) is ObservationType.DEBUG
    assert classify(asked) is ObservationType.LEARNING
