"""The past sessions of a project say what its next session probably works on."""

from palaver.observe.memory.continuation import Continuation, continuation


def test_recent_sessions_count_more() -> None:
    """Sessions that lately modified the same files continue each other, whatever older sessions did."""
    same, different = [("a.py", "b.py")] * 5, [(f"{number}.py",) for number in range(4)]

    assert continuation([*same, *different]) == Continuation(True, ("a.py", "b.py"))
    assert continuation([*different, *same]) == Continuation(False, ())


def test_a_frequent_file_is_likely_without_continued_sessions() -> None:
    """A file that three of four sessions modify is likely, the most frequent first, and others are not."""
    history = [("log.md", "a.py"), ("log.md",), ("b.py",), ("log.md",)] * 3

    assert continuation(history).files == ("log.md",)


def test_sessions_without_modified_files_do_not_count() -> None:
    """Sessions that only answer questions neither continue others nor interrupt them."""
    history = [("a.py",), (), ("a.py",), (), (), ("a.py",), ("a.py",)]

    assert continuation(history) == continuation([files for files in history if files])
    assert continuation(history).continues
    assert continuation([(), ()]) == Continuation(False, ())
