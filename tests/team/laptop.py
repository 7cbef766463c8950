"""Laptops of members in tests: homes with archived conversations that share with a running server."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from click.testing import CliRunner, Result
from msgspec.structs import replace

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.ingest.ingest import Ingest
from palaver.archiver.ingest.transcripts import in_paths
from palaver.archiver.store import ARCHIVER, Store
from palaver.archiver.store.team_table import Offer, Offered, OfferState
from palaver.cli import main
from palaver.core.deletion import DeletionRequest
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.team.client.offers import Offers
from palaver.team.client.push import PushReport, TeamPush
from palaver.team.protocol import ItemKind

from ..archiver.formats.claude_code.claude_lines import assistant, jsonl, text, user
from .postgres import DatabaseUrls

LIBRARY: Final = "seed-library"
CLOCK: Final = "tide-clock"
"""Projects of the sample archive."""


def offered(offer: Offer) -> Offered:
    """Return the row of an offered item that was never sent."""
    return Offered(*offer, 1, OfferState.WAITING)


class Laptop:
    """Laptop with its own home."""

    def __init__(self, root: Path, sample: Home | None = None) -> None:
        """Create a home, as a copy of `sample` or with nothing but the first line that is written."""
        self.root, self.home = root, Home(root / "palaver")
        if sample is not None:
            shutil.copytree(sample.root, self.home.root)

    def run(self, *arguments: str, code: int = 0) -> Result:
        """Run a command with this home."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PALAVER_HOME", str(self.home.root))
            done = CliRunner().invoke(main, arguments)
        assert done.exit_code == code, done.output
        return done

    def team(self, *arguments: str, code: int = 0) -> Result:
        """Run a command of `palaver team`."""
        return self.run("team", *arguments, code=code)

    def json(self, *arguments: str, code: int = 0) -> Any:
        """Run a command of `palaver team`, and return its JSON output."""
        return json.loads(self.team(*arguments, "--json", code=code).stdout)

    def push(self) -> PushReport:
        """Push in this process."""
        with Archive(self.home) as archive:
            return TeamPush(archive).run()

    def write(self, project: str, session: str, *words: str, folder: Path | None = None) -> None:
        """Append an exchange for each word to a session, by default in /home/demo/PROJECT, and archive the session."""
        file = self.root / "projects" / project / f"{session}.jsonl"
        file.parent.mkdir(parents=True, exist_ok=True)
        place = {"sessionId": session, "cwd": str(folder or f"/home/demo/{project}")}
        with file.open("ab") as stream:
            for word in words:
                asked = user(f"Why does the {word} fail at the checkout?", uuid=f"{word}-asked")
                answer = assistant(text(f"The {word} has no address."), id=f"msg-{word}")
                stream.write(jsonl([{**line, **place} for line in (asked, answer)]))
        self.archive()

    def archive(self) -> None:
        """Archive the transcripts, without observations and vectors."""
        self.home.prepare()
        with Store.create(self.home.database) as store, store.leases.hold(ARCHIVER):
            paths = list(self.root.glob("projects/*/*.jsonl"))
            Ingest(store, RawArchive(self.home.archive)).run(in_paths(paths))

    def forget(self, *, erase: bool = False, **what: Any) -> int:
        """Delete conversations, and return the number of the deletion."""
        with Archive(self.home) as archive:
            request = DeletionRequest(erase=erase, **what)
            preview = archive.deletions.preview(request)
            number = archive.deletions.delete(request, preview.token).number
        assert number is not None
        return number

    def planned(self) -> dict[str, str]:
        """Return the hashes of the items that the levels let out, by ID."""
        with Archive(self.home) as archive:
            membership = archive.store.team.joined()
            assert membership is not None
            offers = Offers(archive, membership)
            found = dict[str, str]()
            for unit in offers.units():
                for name, content in offers.of_unit(unit).items():
                    built = offers.item(offered(content.offer))
                    assert built is not None
                    found[name] = built[0].hash
            return found

    def held(self, urls: DatabaseUrls) -> dict[str, str]:
        """Return the hashes of the items that the server holds of this laptop's person, by ID."""
        return {name: hashed for name, hashed, _, _ in self._rows(urls)}

    def conversations(self, urls: DatabaseUrls) -> dict[str, str]:
        """Return the same without usage, whose IDs differ between machines."""
        return {name: hashed for name, hashed, kind, _ in self._rows(urls) if kind != ItemKind.USAGE}

    def texts(self, urls: DatabaseUrls) -> str:
        """Return all that the server holds of this laptop's person."""
        return "\n".join(bytes(body).decode() for _, _, _, body in self._rows(urls))

    def _rows(self, urls: DatabaseUrls) -> list[tuple[str, str, str, bytes]]:
        with Archive(self.home) as archive:
            membership = archive.store.team.membership()
        assert membership is not None
        with psycopg.connect(urls.owner) as connection:
            query = "SELECT id::text, hash, kind, body FROM palaver.item WHERE person = %s"
            return connection.execute(query, (membership.person,)).fetchall()


def address_of(laptop: Laptop) -> str:
    """Return the address of the server that the laptop joined."""
    with Archive(laptop.home) as archive:
        membership = archive.store.team.joined()
    assert membership is not None
    return membership.url


def set_address(laptop: Laptop, url: str) -> None:
    """Let the server of the team have another address, which only a damaged database would do."""
    with Archive(laptop.home) as archive, archive.store.transaction():
        membership = archive.store.team.joined()
        assert membership is not None
        archive.store.team.save(replace(membership, url=url))
