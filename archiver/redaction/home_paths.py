r"""Shortening of paths of home folders to `~`, because they contain the names of users.

Recognised are `/home/NAME`, `/Users/NAME` and `C:\Users\NAME`, and the home folder of this user wherever it is. They
can be file URLs, paths of WSL, Cygwin and Git Bash, have escaped separators (JSON, percent signs, HTML), or be folder
names in which each separator is a dash.
"""

import re
from pathlib import PurePath
from typing import Final

_SEPARATOR: Final = (
    r"(?:\\{1,8}u00(?:2[fF]|5[cC])|[\\/]{1,16}|(?:%2[fF]|%5[cC]){1,4}|(?:&\#(?:47|92|x2[fF]|x5[cC]);){1,4})"
)
"""Pattern for a separator, plain or escaped. Its repetitions are bounded, so that a search takes linear time."""
_NAME: Final = r"(?:[^\s\\/:*?\"'`<>|,;()\[\]{}%&=$#!]|%20){1,64}"
_DRIVE: Final = rf"(?:[a-zA-Z](?::|%3[aA])|{_SEPARATOR}(?:(?:mnt|cygdrive){_SEPARATOR})?[a-zA-Z](?={_SEPARATOR}))"
_HOST: Final = re.compile(r"\bhttps?://[\w.-]+(?::\d+)?\Z", re.IGNORECASE)
_HOME: Final = re.compile(
    rf"""(?:\bfile:(?://(?:localhost)?)?(?={_SEPARATOR}))?
    (?:
      {_DRIVE} {_SEPARATOR} (?i:users|documents\ and\ settings) {_SEPARATOR}
        (?:{_NAME} (?:\ {_NAME}){{1,2}} (?={_SEPARATOR}) | {_NAME})
    | (?:{_SEPARATOR} (?:export|private|usr|var|System{_SEPARATOR}Volumes{_SEPARATOR}Data))?
        {_SEPARATOR} (?:home|Users) {_SEPARATOR} {_NAME}
    )
    | (?<![\w-]) (?:[A-Za-z]-)? -(?:home|Users)- [^\W_]+
    """,
    re.VERBOSE,
)
_QUICK: Final = re.compile(r"home|users|documents and settings", re.IGNORECASE)


class HomePaths:
    """Shortener of the paths of all home folders. It counts the shortened paths."""

    def __init__(self, own: PurePath) -> None:
        """Recognise the paths of home folders in the usual places, and the home folder `own`."""
        self.count = 0
        parts = [part for part in re.split(r"[\\/]+", str(own)) if part]
        self._own = _own_pattern(parts) if parts else None

    def shorten(self, text: str) -> str:
        """Return a text in which each path of a home folder begins with `~`."""
        if self._own is not None:
            text = self._own.sub(self._replacement, text)
        return _HOME.sub(self._replacement, text) if _QUICK.search(text) else text

    def _replacement(self, match: re.Match[str]) -> str:
        if _HOST.search(match.string, max(0, match.start() - 300), match.start()):
            return match[0]  # The path of a page, such as https://example.com/home/news.
        self.count += 1
        return "~"


def _own_pattern(parts: list[str]) -> re.Pattern[str]:
    """Return the pattern for a home folder with these parts of its path."""
    path = _SEPARATOR.join(re.escape(part).replace(r"\ ", r"(?:\ |%20)") for part in parts)
    is_windows = parts[0].endswith(":")
    start = "" if is_windows else rf"(?<![\w.~]){_SEPARATOR}"
    dashed = re.sub(r"[^a-zA-Z0-9]", "-", "/".join(["", *parts] if not is_windows else parts))
    file = rf"(?:\bfile:(?://(?:localhost)?)?(?={_SEPARATOR}))?"
    return re.compile(rf"(?:{file}{start}{path}|(?<![\w-]){re.escape(dashed)})(?![\w])", re.IGNORECASE)
