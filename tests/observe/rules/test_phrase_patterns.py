"""Phrase lists match only whole words. Each list is used, and each use has a list."""

import re
from importlib.resources import files
from pathlib import Path

import orjson

from palaver.observe.rules.salience import phrases, regex, word_set

FOLDER = files("palaver.observe.rules")
LISTS = orjson.loads(FOLDER.joinpath("phrases.json").read_bytes())
TABLES = orjson.loads(FOLDER.joinpath("words.json").read_bytes())


def test_every_list_compiles() -> None:
    """Each list is a valid regular expression of a known form."""
    for name, lines in LISTS.items():
        (regex if {"regex", "verbose"} & {*lines} else phrases)(name).search("text")
    assert all(word_set(name) for name, table in TABLES.items() if isinstance(table, list))


def test_every_list_is_used() -> None:
    """Each list and each table is named in a module, and no module names another one."""
    observe = Path(str(FOLDER)).parent
    sources = {path.name: path.read_text(encoding="utf-8") for path in observe.rglob("*.py")}
    loaders = r"(?:phrases|regex|word_set|text_table|weight_table)"
    written = {name for source in sources.values() for name in re.findall(rf'{loaders}\("([^"]+)"\)', source)}
    derived = [name for source in sources.values() for name in re.findall(rf'{loaders}\(f"(\w+\.)', source)]

    assert written <= {*LISTS, *TABLES}
    assert [name for name in {*LISTS, *TABLES} - written if not name.startswith(tuple(derived))] == []


def test_words_are_whole() -> None:
    """`because` does not match within a word, and a list for the start of a text does not match later."""
    assert phrases("salience.cause").search("it fails because of that")
    assert not phrases("salience.cause").search("itbecauses")
    assert phrases("user_request.action").match("add it")
    assert not phrases("user_request.action").match("to add")
    assert not phrases("user_request.action").match("addition")
