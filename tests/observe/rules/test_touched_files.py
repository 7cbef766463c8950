"""Are paths shown as a person in the project would write them?"""

import pytest

from palaver.observe.rules.touched_files import relative_path, touched_files

from .telling import CWD, Telling, session


@pytest.mark.parametrize(
    ("path", "roots", "expected"),
    [
        ("/w/shop/src/a.py", ("/w/shop",), "src/a.py"),
        ("/w/shop2/a.py", ("/w/shop",), "/w/shop2/a.py"),
        (r"C:\w\shop\src\a.py", (r"C:\w\shop",), "src/a.py"),
        ("/w/shop", ("/w/shop",), "/w/shop"),
        ("src/a.py", ("/w/shop",), "src/a.py"),
        ("/w/shop/web/a.ts", ("/x", "/w/shop/"), "web/a.ts"),
    ],
)
def test_paths_inside_the_project_are_relative(path: str, roots: tuple[str, ...], expected: str) -> None:
    """Inside the project a path is relative with forward slashes; outside it stays whole."""
    assert relative_path(path, roots) == expected


def test_modified_files_are_not_repeated_among_the_read() -> None:
    """A file that was read and then changed is listed once, as changed."""
    told = Telling().read(f"{CWD}/src/a.py").read("/etc/hosts").edited("src/a.py")

    found = touched_files(told.exchange, session())

    assert (found.read, found.modified) == (("/etc/hosts",), ("src/a.py",))
