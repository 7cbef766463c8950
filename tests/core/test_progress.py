"""Tests of core/runtime.py."""

from palaver.core.runtime import Progress, Reporter, silent


def test_silent_fits_both_callback_types() -> None:
    """`silent` can be called as `Progress` and as `Reporter`."""
    progress: Progress = silent
    reporter: Reporter = silent

    progress(1, 2)
    reporter("Archiving", 1, 2)
