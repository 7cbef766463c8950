"""Contrast of the colours of both themes, by the formula of WCAG 2.2."""

import re
from itertools import product
from pathlib import Path

import pytest

import palaver.viewer

CSS = (Path(palaver.viewer.__path__[0]) / "static" / "viewer.css").read_text("utf-8")
TEXTS = ("text", "muted", "accent", "good", "bad", "warn")
GROUNDS = ("page", "surface", "raised")
PAIRS = (
    *product(TEXTS, GROUNDS),
    ("text", "mark"),
    ("text", "added"),
    ("text", "removed"),
    ("accent", "accent-soft"),
    ("on-accent", "accent"),
)


def theme(*, dark: bool) -> dict[str, str]:
    """Return the colours of a theme by name."""
    light, _, rest = CSS.partition("@media (prefers-color-scheme: dark)")
    return dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", rest.partition("}")[0] if dark else light))


def luminance(colour: str) -> float:
    parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_enough_contrast(*, dark: bool) -> None:
    """Text has a contrast of at least 4.5, and borders of fields of at least 3."""
    colours = theme(dark=dark)

    def contrast(one: str, other: str) -> float:
        dim, bright = sorted((luminance(colours[one]), luminance(colours[other])))
        return (bright + 0.05) / (dim + 0.05)

    assert {pair: round(contrast(*pair), 2) for pair in PAIRS if contrast(*pair) < 4.5} == {}
    assert contrast("strong-line", "surface") >= 3


def test_no_style_is_loaded_from_elsewhere() -> None:
    assert not re.search(r"url\(|@import|http", CSS)
