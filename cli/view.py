"""`palaver view`: show the archive in a browser."""

import webbrowser
from collections.abc import Sequence
from urllib.parse import quote

import click
from msgspec.structs import replace

from palaver import __version__

from ..core import ids
from ..core.home import Home
from ..observe.archive import Archive
from .demo import refuse_demo_only
from .language_model import judge_factory


@click.command()
@click.argument("words", nargs=-1, metavar="[ID|WORDS...]")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=0,
    show_default=True,
    metavar="PORT",
    help="Port on this machine (0: any free port).",
)
@click.option("--no-browser", is_flag=True, help="Print the link without opening a browser.")
@click.option("--read-only", is_flag=True, help="Change no byte of Palaver's data. Also with PALAVER_READ_ONLY=1.")
def view(*, words: Sequence[str], port: int, no_browser: bool, read_only: bool) -> None:
    """Show the archive in a browser: sessions, search, memories and the state of the archive.

    ID, such as obs-24 or a session ID, opens its page. WORDS open the search. The server accepts only the browser
    that opened the printed link, and ends with Ctrl-C.
    """
    home = Home.find()
    refuse_demo_only(home, "view")
    home = replace(home, read_only=read_only or home.read_only)
    archive = Archive(home)
    if not home.read_only:
        archive.make_judge = judge_factory(archive)
    announced = False

    def announce(link: str) -> None:
        nonlocal announced
        label = "Link for another browser" if announced else "Palaver shows your archive at"
        click.echo(f"{label}: {link}", err=True)
        if not announced:
            click.echo("The link works once. Press Ctrl-C to stop.", err=True)
        if not announced and not no_browser:
            webbrowser.open(link)
        announced = True

    from ..viewer.server import serve_viewer  # loads the server and the templates

    serve_viewer(archive, __version__, port, _target(" ".join(words)), announce)


def _target(text: str) -> str:
    """Return the path of the page that shows an ID, or finds words."""
    if not text:
        return "/view/"
    if ids.canonical(text):
        return f"/view/items/{ids.canonical(text)}"
    return f"/view/find?q={quote(text, safe='')}"
