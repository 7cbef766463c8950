"""Vectors that leave a machine with an exchange."""

from pathlib import Path

import pytest

from palaver.archiver.store import Source, Store
from palaver.archiver.store.change_log import Embedding
from palaver.archiver.store.team_table import Membership, Offered, OfferState
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.core.home import Home
from palaver.observe.archive import Archive
from palaver.search.model.embedder import load
from palaver.team.client.offers import SESSION, Offers
from palaver.team.protocol import ItemKind, Level

TEAM = Membership("https://team", "t", "red", "00000000-0000-0000-0000-000000000001", "ann", "d", "e")
LONG = "the brass kettle whistles on the stove " * 30


def turn(line: int, kind: Kind = Kind.PROSE, *, active: bool = True) -> Turn:
    """Return a turn that has a vector of its own."""
    speaker = Speaker.HUMAN if kind is Kind.PROMPT else Speaker.ASSISTANT
    return Turn(line, speaker, kind, f"{line} {LONG}", active=active)


@pytest.mark.parametrize(
    ("turns", "leaving"),
    [
        ([turn(1, Kind.PROMPT)], [0]),
        ([turn(1, Kind.PROMPT), *map(turn, range(2, 8))], [0, 5, 6]),
        ([turn(2), turn(3), turn(4)], [2, 3]),
        ([turn(1, Kind.PROMPT), turn(2), turn(3), turn(4, Kind.RECAP)], [0, 1, 2]),
        ([turn(1, Kind.PROMPT), turn(2), turn(3, active=False), turn(4)], [0, 1, 3]),
        ([turn(1, Kind.PROMPT), turn(2, Kind.PROMPT, active=False), turn(3)], [1]),
    ],
    ids=["prompt", "answers", "no prompt", "summary of the agent", "abandoned answer", "abandoned prompt"],
)
def test_vectors_of_the_prompt_and_the_last_answers_leave(
    tmp_path: Path, turns: list[Turn], leaving: list[int]
) -> None:
    """A vector leaves only if its whole text leaves."""
    home = Home(tmp_path / "home")
    home.make()
    with Store.create(home.database) as store, store.transaction():
        number = store.sessions.save(Session("codex", "s", project="spoon"))
        path = Path("/s.jsonl")
        source = store.sources.save(Source("codex", path, "s.jsonl", 0, 0, 0, 0, head=b"", tail=b""))
        store.exchanges.replace(number, source, 0, [Exchange(0, Span(1, 9, 0, 9), tuple(turns), None, None)])
        [key] = store.items.all_keys()
        parts = {part: Embedding(bytes([part])) for part in range(8)}
        store.vectors.replace(load().name, {key: parts})
        store.team.set_level("name:spoon", "spoon", Level.TEAM)
    with Archive(home) as archive:
        offers = Offers(archive, TEAM)
        [offer] = [
            content.offer
            for content in offers.of_unit(f"{SESSION}{number}").values()
            if content.offer.kind == ItemKind.EXCHANGE
        ]
        item, _ = offers.item(Offered(*offer, 1, OfferState.WAITING)) or pytest.fail("the exchange stays")

    assert [vector.part for vector in item.vectors] == leaving
