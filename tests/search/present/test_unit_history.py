"""Tests of the links between units of code and the exchanges that edited them."""

from pathlib import Path

import pytest

from palaver.archiver.copies.raw_copy import RawArchive
from palaver.archiver.documents.document_folders import DocumentRoots
from palaver.archiver.documents.document_ingest import DocumentIngest
from palaver.archiver.redaction import Redactor
from palaver.archiver.store import Store
from palaver.core import ids
from palaver.core.document import EditBasis
from palaver.core.home import Home
from palaver.search.present.details import UnitHistory

from ...observe.traces.working import Working

PRICE = '''def net_price(gross, rate):
    """Subtract the tax."""
    return gross / (1 + rate)


class Basket:
    def add_article(self, article):
        self.articles.append(article)
'''


@pytest.fixture
def working(tmp_path: Path) -> Working:
    return Working(tmp_path)


def edits(working: Working, file: Path, name: str) -> list[tuple[EditBasis, int]]:
    """Archive the conversations, index a file, and return the edits of one of its units, newest first."""
    working.traces().close()
    with Store.open(home(working).database) as store:
        DocumentIngest(store, Redactor(b"k" * 32)).index_file(file, "default", DocumentRoots([file.parent]))
        [unit] = [each for each in store.symbols.of_file(file) if each.name == name]
        key = ids.key(unit.id)
        assert key is not None
        found = UnitHistory(store, RawArchive(home(working).archive)).edits_of(key)
    return [(each.basis, each.lines) for each in found]


def home(working: Working) -> Home:
    return Home(working.root / "palaver")


def test_an_edit_belongs_to_the_unit_with_its_lines(working: Working) -> None:
    """An edit is linked with the units whose present lines it wrote, wherever these lines moved."""
    file = working.write("one", "price.py", PRICE)
    working.edit("two", "price.py", "1 + rate)", "1.0 + rate)  # exact")
    file.write_text("import math\n\n\n" + file.read_text())

    assert edits(working, file, "net_price") == [(EditBasis.TEXT, 1), (EditBasis.TEXT, 2)]
    assert edits(working, file, "Basket.add_article") == [(EditBasis.TEXT, 2)]


def test_a_replaced_text_is_matched_by_its_declaration(working: Working) -> None:
    """An edit whose lines were all replaced is still linked with the unit that it declared."""
    file = working.write("one", "price.py", PRICE)
    file.write_text("def net_price(amount):\n    return amount - tax_of(amount)\n")

    assert edits(working, file, "net_price") == [(EditBasis.NAME, 0)]


def test_a_copy_needs_two_equal_lines(working: Working) -> None:
    """A file in another folder is linked only by at least two lines of a unit, not by its declaration."""
    working.write("one", "old/price.py", PRICE)
    copy = working.type("clone/price.py", PRICE.replace("self.articles.append", "self.articles.insert"))

    assert edits(working, copy, "net_price") == [(EditBasis.TEXT, 3)]
    assert edits(working, copy, "Basket.add_article") == []


def test_a_moved_file_keeps_its_edits(working: Working) -> None:
    """An edit of a file that was renamed later is still linked with its units."""
    file = working.write("one", "price.py", PRICE)
    assert edits(working, file, "net_price") == [(EditBasis.TEXT, 3)]
    moved = file.rename(file.with_name("prices.py"))

    assert edits(working, moved, "net_price") == [(EditBasis.TEXT, 3)]


def test_an_exchange_names_the_units_that_it_edited(working: Working) -> None:
    """An exchange is linked with each indexed unit that it edited, in the order of the file."""
    file = working.write("one", "price.py", PRICE)
    working.edit("two", "price.py", "Subtract the tax.", "Subtract the tax of a price.")
    working.traces().close()

    with Store.open(home(working).database) as store:
        DocumentIngest(store, Redactor(b"k" * 32)).index_file(file, "default", DocumentRoots([file.parent]))
        history = UnitHistory(store, RawArchive(home(working).archive))
        units = {
            edit.exchange: [each.name for each in history.units_of(edit.exchange)] for edit in store.edits.newest(None)
        }

    assert list(units.values()) == [["net_price"], ["net_price", "Basket", "Basket.add_article"]]


def test_an_exchange_names_the_units_of_a_file_that_was_moved(working: Working) -> None:
    """Units of a file that was renamed since are named with its new path."""
    file = working.write("one", "price.py", PRICE)
    working.traces().close()
    with Store.open(home(working).database) as store:
        ingest, roots = DocumentIngest(store, Redactor(b"k" * 32)), DocumentRoots([file.parent])
        ingest.index_file(file, "default", roots)
        moved = file.rename(file.with_name("prices.py"))
        ingest.index_file(moved, "default", roots)
        [edit] = store.edits.newest(None)
        units = UnitHistory(store, RawArchive(home(working).archive)).units_of(edit.exchange)

    assert [(each.name, each.source_file, each.basis) for each in units] == [
        ("net_price", moved, EditBasis.TEXT),
        ("Basket", moved, EditBasis.TEXT),
        ("Basket.add_article", moved, EditBasis.TEXT),
    ]
