"""Tests for core/progress.py."""

from palaver.core.progress import Progress, Reporter, silent


def test_silence_fits_every_ear() -> None:
    """One silent listener does for a stage and for all stages."""
    progress: Progress = silent
    reporter: Reporter = silent

    progress(1, 2)
    reporter("Archiving", 1, 2)
