"""Which files? Paths as a person in the project would write them."""

from collections.abc import Iterable

from msgspec import Struct

from ...core.conversation import Exchange, Session

READ_MAX = 8
MODIFIED_MAX = 30


class Files(Struct, frozen=True):
    """The files of an exchange in first-seen order; what was modified is not repeated among what was read."""

    read: tuple[str, ...]
    modified: tuple[str, ...]

    def named_in(self, text: str) -> "Files":
        """Those whose name stands in a text."""
        return Files(
            tuple(path for path in self.read if name_of(path) in text),
            tuple(path for path in self.modified if name_of(path) in text),
        )


def files(exchange: Exchange, session: Session) -> Files:
    """The files of an exchange relative to the project, absolute where they lie outside of it."""
    roots = tuple(root for root in (session.cwd, exchange.cwd) if root)
    modified = tuple(dict.fromkeys(relative(path, roots) for path in exchange.writes))
    read = dict.fromkeys(relative(path, roots) for path in exchange.reads)
    return Files(tuple(path for path in read if path not in modified), modified)


def relative(path: str, roots: Iterable[str]) -> str:
    """A path below the first root that holds it, with forward slashes; unchanged below none of them."""
    plain = path.replace("\\", "/")
    for root in roots:
        folder = root.replace("\\", "/").rstrip("/") + "/"
        if plain.startswith(folder) and len(plain) > len(folder):
            return plain[len(folder) :]
    return plain


def name_of(path: str) -> str:
    """The last part of a path, whichever slashes it is written with."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]
