"""File paths are relative to the project."""

import pytest

from palaver.observe.rules.classification import is_changelog, relative_path, touched_files

from .exchange_script import CWD, Script, session


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
    """Paths inside the project are relative with forward slashes, and other paths stay absolute."""
    assert relative_path(path, roots) == expected


def test_modified_files_are_not_listed_as_read() -> None:
    """A file that was read and modified is listed only as modified."""
    script = Script().read(f"{CWD}/src/a.py").read("/etc/hosts").edited("src/a.py")

    found = touched_files(script.exchange, session())

    assert (found.read, found.modified) == (("/etc/hosts",), ("src/a.py",))


@pytest.mark.parametrize("path", ["CHANGELOG.md", "docs/HISTORY.rst", "CHANGELOG", r"web\release-notes-2.1.txt"])
def test_changelogs(path: str) -> None:
    """A text file or a file without extension is a changelog if its name begins like one."""
    assert is_changelog(path)


@pytest.mark.parametrize("path", ["src/history_table.py", "changelog_parser.ts", "history/page.md", "README.md"])
def test_modules_are_no_changelogs(path: str) -> None:
    """A module is no changelog, although its name begins like one."""
    assert not is_changelog(path)
