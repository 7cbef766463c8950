"""Exclusion from the index: folders that the settings exclude, and exchanges that the user excludes in a prompt."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from ...core.conversation import Exchange, Fact, Kind, Session, Speaker
from ...core.errors import ConfigInvalid
from ...core.project import working_folders
from ..redaction.private_spans import Unindexed, opt_out_in
from .parsing import ParsedLines


class Exclusion:
    """Folders that are excluded by shell patterns. In these patterns, `*` also matches slashes.

    A pattern that begins with `/` or `~` matches whole paths. Any other pattern matches names at any depth. Everything
    below an excluded folder is excluded too. Patterns are case-sensitive.
    """

    def __init__(self, patterns: Sequence[str] = ()) -> None:
        """Check the patterns. Raise `ConfigInvalid` for a pattern that could never match."""
        self._names = [pattern.rstrip("/\\") for pattern in patterns if not _is_path(pattern)]
        self._paths = [str(Path(pattern).expanduser()) for pattern in patterns if _is_path(pattern)]
        for name in self._names:
            if not name or "/" in name or "\\" in name:
                raise ConfigInvalid(
                    f"exclude: {name!r} is neither a name nor an absolute path",
                    hint='Write a bare name such as "secret-*", or a path that begins with / or ~.',
                )

    def __bool__(self) -> bool:
        return bool(self._names or self._paths)

    def covers(self, folder: str) -> bool:
        """Return whether a folder, one of its parents, or the repository of its worktree is excluded.

        Windows paths are recognised on every system.
        """
        return bool(self) and any(map(self._covers, working_folders(folder)))

    def _covers(self, folder: str) -> bool:
        parts = folder.replace("\\", "/").rstrip("/").split("/")
        if any(fnmatchcase(part, name) for part in parts if part for name in self._names):
            return True
        wholes = ("/".join(parts[: end + 1]) for end in range(len(parts)))
        return any(fnmatchcase(whole, path) for whole in wholes for path in self._paths)


def _is_path(pattern: str) -> bool:
    return pattern.startswith(("/", "~")) or pattern[1:3] in {":\\", ":/"}


def remove_excluded(parsed: ParsedLines, session: Session, exclusion: Exclusion) -> None:
    """Remove the exchanges that the settings or the user exclude, and count their lines by reason."""
    folder = session.cwd or next((note.value for note in parsed.notes if note.fact is Fact.CWD), "")
    kept: list[Exchange] = []
    for exchange in parsed.exchanges:
        reason = Unindexed.EXCLUDED if exclusion.covers(exchange.cwd or folder) else _opt_out(exchange)
        if reason is None:
            kept.append(exchange)
        else:
            parsed.count_as(reason, {turn.line for turn in exchange.turns})
    parsed.exchanges = kept


def remove_all(parsed: ParsedLines) -> None:
    """Remove all content of a session that the user excluded, and count its lines as `unindexed-session`."""
    parsed.count_as(Unindexed.SESSION, range(parsed.start.line, parsed.start.line + len(parsed.outcomes)))
    parsed.exchanges, parsed.notes = [], []


def is_excluded(exchange: Exchange) -> bool:
    """Return whether the user excluded this exchange, or its session, in a prompt."""
    return _opt_out(exchange) is not None


def _opt_out(exchange: Exchange) -> Unindexed | None:
    prompts = (turn for turn in exchange.turns if turn.kind is Kind.PROMPT and turn.speaker is Speaker.HUMAN)
    return next(filter(None, (opt_out_in(turn.text) for turn in prompts)), None)
