"""Session as it is shared with other people, and the report of what it contains and what was left out."""

from enum import StrEnum

from msgspec import Struct, field

from .conversation import Milliseconds
from .observation import Observation
from .transcript_page import CallDetail, SessionHeader, Step


class ShareOptions(Struct, frozen=True):
    """Choice of what is shared.

    Attributes:
        first: First line of the session's main file that is shared, or None for the whole session.
        last: Last such line, or None for all lines from `first` on.
        output: Whether the output of tools, thinking and notices of the agent's program are shared.
        prompts_only: Whether only prompts and answers of the user are shared.
    """

    first: int | None = None
    last: int | None = None
    output: bool = False
    prompts_only: bool = False


class LeftOutReason(StrEnum):
    """Reason why lines of a session are not shared."""

    FORGOTTEN = "forgotten"
    PRIVATE_PROJECT = "private project"
    PRIVATE_TEXT = "private text"
    """Only the text between `<private>` and `</private>` is left out of the lines."""


class LeftOutLines(Struct, frozen=True):
    """Lines of a file of a session that are not shared. `part` is the number of the file, from 1."""

    reason: LeftOutReason
    part: int
    first: int
    last: int


class ShareReport(Struct, frozen=True):
    """Report of what a shared session contains.

    Attributes:
        id: Agent's ID of the session.
        secrets: Number of different secrets by kind that were replaced by placeholders.
        home_paths: Number of paths of home folders that were shortened.
        left_out: Lines that are not shared.
        withheld: Number of parts that the options exclude, by their name in the plural.
    """

    id: str
    title: str
    project: str
    agent: str
    exchanges: int
    prompts: int
    answers: int
    calls: int
    outputs: int
    images: int
    secrets: dict[str, int] = field(default_factory=dict[str, int])
    home_paths: int = 0
    left_out: tuple[LeftOutLines, ...] = ()
    withheld: dict[str, int] = field(default_factory=dict[str, int])


class SharedImage(Struct, frozen=True):
    """Image without metadata."""

    media_type: str
    data: bytes


class SharedCall(Struct, frozen=True):
    """Tool call with its input, and with its output and images if these are shared."""

    detail: CallDetail
    images: tuple[SharedImage, ...] = ()


class SharedStep(Struct, frozen=True):
    """Step of an exchange with its calls, or the images of a prompt."""

    step: Step
    calls: tuple[SharedCall, ...] = ()
    images: tuple[SharedImage, ...] = ()


class SharedExchange(Struct, frozen=True):
    """Exchange with the steps that are shared. `part` is the number of its file, from 1."""

    part: int
    number: int
    heading: str
    steps: tuple[SharedStep, ...]
    started: Milliseconds | None = None
    seconds: float | None = None


class SharedSession(Struct, frozen=True):
    """Session without secrets and paths of home folders. The facts in the header are those that may be shared."""

    header: SessionHeader
    exchanges: tuple[SharedExchange, ...]
    report: ShareReport


class SharedObservation(Struct, frozen=True):
    """Observation with its public ID, such as `obs-12`."""

    id: str
    observation: Observation


class SharedCard(Struct, frozen=True):
    """Session card with the observations of the session."""

    header: SessionHeader
    observations: tuple[SharedObservation, ...]


class VaultReport(Struct, frozen=True):
    """Report of an export to a vault, with the names of notes.

    Attributes:
        written: Notes that are new or have changed.
        removed: Notes whose session or observation no longer exists.
        edited: Notes that the user has edited, which are kept.
        unchanged: Number of other notes.
        private: Number of sessions of private projects, which are left out.
    """

    written: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    unchanged: int
    private: int = 0
    secrets: dict[str, int] = field(default_factory=dict[str, int])
    home_paths: int = 0
