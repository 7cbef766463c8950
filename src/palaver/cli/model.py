"""`palaver model`: which embedding model gives meaning."""

import click
from msgspec.structs import replace

from palaver.core.config import Config
from palaver.core.home import Home
from palaver.search.model.embedder import DEFAULT_MODEL, load

from .options import as_json
from .output import print_json


@click.group(invoke_without_command=True)
@as_json
@click.pass_context
def model(ctx: click.Context, *, as_json: bool) -> None:
    """Say which embedding model gives meaning to what is searched, or `use` another."""

    if ctx.invoked_subcommand is not None:
        return
    chosen = Config.read(Home.find().config).model
    if as_json:
        print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None})
    else:
        click.echo(chosen or f"{DEFAULT_MODEL} (packaged)")


@model.command("use")
@click.argument("name")
@as_json
def use_model(name: str, *, as_json: bool) -> None:
    """Take another model from now on.

    NAME is one that sentence-transformers knows and may download, the whole path of a folder, or `packaged`. The old
    vectors answer until `palaver archive` has made all new ones.
    """

    home = Home.find()
    chosen = None if name in {"packaged", DEFAULT_MODEL} else name
    dimension = load(chosen or DEFAULT_MODEL, download=True).dimension
    home.make()
    replace(Config.read(home.config), model=chosen).write(home.config)
    if as_json:
        print_json({"model": chosen or DEFAULT_MODEL, "packaged": chosen is None, "dimension": dimension})
    else:
        click.echo(f"Using {chosen or DEFAULT_MODEL}, {dimension} numbers per text. Run `palaver archive` to embed.")
