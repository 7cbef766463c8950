"""Tests of path patterns in filters."""

import time

from palaver.core.text import is_path_pattern, path_fits

from ..cases import for_each


@for_each(
    "pattern, path, covered",
    [
        ("*.ts", "/w/app/src/auth.ts", True),
        ("*.ts", "/w/app/src/auth.tsx", False),
        ("src/*.ts", "/w/app/src/auth.ts", True),
        ("src/*.ts", "/w/app/src/api/auth.ts", False),
        ("src/**/auth.ts", "/w/app/src/api/v1/auth.ts", True),
        ("src/**/auth.ts", "/w/app/src/auth.ts", True),
        ("src/", "/w/app/src/api/auth.ts", True),
        ("src/", "/w/app/source/auth.ts", False),
        ("/w/*/src/", "/w/app/src/auth.ts", True),
        ("/src/", "/w/app/src/auth.ts", False),
        ("a?th.ts", "auth.ts", True),
        ("[a-z].ts", "a.ts", False),
    ],
)
def test_patterns_cover_paths(pattern: str, path: str, covered: bool) -> None:
    """`*` and `?` match within a name, `**` matches across folders, and a final slash matches everything below."""
    assert is_path_pattern(pattern) or "[" in pattern
    assert path_fits(pattern, path) is covered


def test_a_hostile_pattern_is_fast() -> None:
    """The time for a pattern with many stars does not grow exponentially."""
    started = time.process_time()

    assert not path_fits("*a" * 500 + "b", "a" * 5_000)
    assert time.process_time() - started < 5
