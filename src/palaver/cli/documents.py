"""`palaver index` and `palaver documents`: files that a person has taken up, beside what agents wrote."""

import sys
from collections.abc import Sequence
from pathlib import Path

import click

from palaver.core.amount import many
from palaver.core.config import Config
from palaver.core.document import DEFAULT_NAMESPACE, FailedFile, IndexedDirectory, IndexedFile
from palaver.core.errors import (
    DocumentNotFound,
    DocumentOutsideRoots,
    DocumentUnreadable,
    InvalidInput,
    UnsupportedDocument,
)
from palaver.core.home import Home
from palaver.search.document_library import DocumentLibrary
from palaver.templates.json_output import to_json

from .options import as_json, not_empty
from .output import print_json, print_page, progress_bars, renderer

namespaced = click.option("--namespace", metavar="NAME", help="Under which name they are kept.")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...", callback=not_empty)
@click.option(
    "--namespace", default=DEFAULT_NAMESPACE, show_default=True, metavar="NAME", help="A name to keep them under."
)
@click.option("--flat", is_flag=True, help="Leave the folders inside a folder alone.")
@as_json
def index(paths: Sequence[str], *, namespace: str, flat: bool, as_json: bool) -> None:
    """Make files, or all files of folders, searchable: Markdown, text, Python and PDF.

    `palaver search` finds them among everything else; --project NAME keeps to a namespace. A file that did not change
    is passed over, one that did replaces what it said before, and one that is gone from its folder goes. Links, hidden
    files and installed packages are left alone. Secrets are taken out first. It can be stopped at any time.
    """

    done, places, wrong = IndexedDirectory(), [Path(path).expanduser() for path in paths], 0
    with _documents(places) as documents, progress_bars() as report:
        for place in places:
            try:
                if place.is_dir():
                    found = documents.index_directory(
                        place, namespace, recursive=not flat, async_mode=False, report=report
                    )
                    _add(done, found)
                else:
                    _add_file(done, documents.index_file(place, namespace))
            except DocumentUnreadable as problem:
                done.failed.append(FailedFile(place, problem.reason, problem.hint))
            except (DocumentNotFound, DocumentOutsideRoots, UnsupportedDocument) as problem:
                if len(places) == 1:
                    raise
                wrong += 1
                reason = "it does not exist" if isinstance(problem, DocumentNotFound) else str(problem)
                done.failed.append(FailedFile(place, reason, problem.hint))
        _add(done, documents.work_off(report))
    if as_json:
        print_json({"namespace": namespace, **to_json(done)})
    else:
        print_page(renderer().render("indexed", indexed=done, namespace=namespace))
    if done.failed:
        sys.exit(2 if wrong == len(places) else 1)


@click.group()
def documents() -> None:
    """Look after what `palaver index` took up: `list`, `forget`."""


@documents.command(name="list", short_help="Every file that is held.")
@as_json
def list_(*, as_json: bool) -> None:
    """Every file that is held, with its chunks; those that wait to be read, and those that could not be."""
    with _held() as held:
        stats = held.stats()
    if as_json:
        print_json(stats)
    else:
        print_page(renderer().render("documents", stats=stats))


@documents.command(short_help="Take files out again.")
@click.argument("paths", nargs=-1, metavar="[PATH...]", callback=not_empty)
@namespaced
@as_json
def forget(paths: Sequence[str], *, namespace: str | None, as_json: bool) -> None:
    """Take files, folders or a whole namespace out again. The files themselves are not touched."""
    if not paths and namespace is None:
        raise click.UsageError("Name files or folders, or a --namespace.")
    with _held() as held:
        if paths:
            gone = sum(held.delete_file(path, namespace) + held.delete_directory(path, namespace) for path in paths)
        else:
            gone = held.delete_namespace(str(namespace))
    if not gone:
        raise InvalidInput("Nothing of that was indexed.", hint="See `palaver documents list`.")
    if as_json:
        print_json({"deleted_chunks": gone})
    else:
        click.echo(f"Removed {many(gone, 'chunk')}; the files themselves were not touched.")


def _add_file(done: IndexedDirectory, indexed: IndexedFile) -> None:
    done.unchanged += indexed.unchanged
    done.indexed += not indexed.unchanged
    done.chunks += 0 if indexed.unchanged else len(indexed.chunk_ids)


def _add(done: IndexedDirectory, more: IndexedDirectory) -> None:
    done.indexed += more.indexed
    done.chunks += more.chunks
    done.unchanged += more.unchanged
    done.gone += more.gone
    done.queued, done.unembedded = more.queued, more.unembedded
    done.failed += more.failed


def _documents(places: Sequence[Path]) -> DocumentLibrary:
    """The documents of this home. Whoever names a path at a shell may have it read: it is a root of its own."""

    home = Home.find()
    roots = [place if place.is_dir() else place.absolute().resolve().parent for place in places]
    return DocumentLibrary.open(home, roots, Config.read(home.config).model)


def _held() -> DocumentLibrary:
    home = Home.find()
    home.check()
    return _documents([])
