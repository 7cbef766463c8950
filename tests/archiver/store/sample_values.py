"""Sample values to store: exchanges, observations and sources."""

from pathlib import Path

from palaver.archiver.store import Source, Store
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.observation import Observation, ObservationType


def exchange(ordinal: int, *texts: str, end: int | None = None) -> Exchange:
    """Return an exchange of ten lines with ten bytes each. The first text is the prompt, the others are the answer."""
    first = 10 * ordinal + 1
    turns = tuple(
        Turn(
            first + number,
            Speaker.ASSISTANT if number else Speaker.HUMAN,
            Kind.PROSE if number else Kind.PROMPT,
            text,
            at=1_000 * ordinal + number,
        )
        for number, text in enumerate(texts)
    )
    last = end or first + 9
    span = Span(first, last, 10 * (first - 1), 10 * last)
    return Exchange(ordinal, span, turns, 1_000 * ordinal, 1_000 * ordinal + 9, "/home/demo/shop", "main")


def decision(title: str, **values: object) -> Observation:
    """Return a decision with this title."""
    return Observation(ObservationType.DECISION, title, **values)  # type: ignore[arg-type]


def source(name: str, session: int | None = None) -> Source:
    """Return a source with a size of 100 bytes."""
    return Source(
        agent="claude-code",
        path=Path(f"/history/{name}.jsonl"),
        archived=f"claude-code/shop/{name}.jsonl",
        device=1,
        inode=2,
        mtime=3,
        size=100,
        head=b"head",
        tail=b"tail",
        session=session,
    )


def store_session(store: Store, name: str = "one") -> tuple[int, int]:
    """Store a new session with a new source, and return their IDs."""
    session = store.sessions.save(Session("claude-code", name))
    return session, store.sources.save(source(name, session))


def keys(store: Store) -> dict[int, int]:
    """Return the keys of the stored exchanges by ordinal."""
    return {found.exchange.ordinal: key for key, found in store.exchanges.load(store.items.all_keys()).items()}
