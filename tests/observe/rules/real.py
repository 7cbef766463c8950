"""Real exchanges, parsed from transcripts as during an ingest run."""

from collections.abc import Iterator
from pathlib import Path

from palaver.archiver.formats.registry import recognise
from palaver.archiver.lines import split
from palaver.archiver.reading.exchanges import group_exchanges
from palaver.core.conversation import Exchange, Session


def real_exchanges(folder: Path) -> Iterator[tuple[Session, Exchange]]:
    """Yield each exchange below a folder, with the session as known when the exchange was parsed."""
    for path in sorted(folder.rglob("*.jsonl")):
        with path.open("rb") as file:
            head = file.read(65536)
            known = recognise(head)
            if known is not None:
                file.seek(0)
                read = known.identify(path, head)
                for event in group_exchanges(known.reader(read), split(file)):
                    if isinstance(event, Exchange):
                        yield read, event
