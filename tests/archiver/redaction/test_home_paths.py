"""Paths of home folders are shortened to `~` in every usual form."""

import time
from pathlib import PurePosixPath, PureWindowsPath

import pytest

from palaver.archiver.redaction.home_paths import HomePaths

FORMS = {
    "/home/alice/x": "~/x",
    "/Users/alice": "~",
    "(/home/alice)": "(~)",
    "/home/alice: no such file": "~: no such file",
    "file:///home/alice/a b": "~/a b",
    "file:///C:/Users/alice/x": "file:///~/x",
    "vscode://file/home/alice/x": "vscode://file~/x",
    r"C:\Users\alice\x": r"~\x",
    r"C:\\Users\\alice\\x": r"~\\x",
    "c:/users/Alice/x": "~/x",
    r"C:\Users\Alice Smith\x": r"~\x",
    r"D:\Documents and Settings\Alice Smith\x": r"~\x",
    r"\\wsl$\Ubuntu\home\alice\x": r"\\wsl$\Ubuntu~\x",
    "/mnt/c/Users/alice/x": "~/x",
    "/cygdrive/c/Users/alice/x": "~/x",
    "/c/Users/alice/x": "~/x",
    "/var/home/alice/x": "~/x",
    "-I/home/alice/include": "-I~/include",
    r"\/home\/alice\/x": r"~\/x",
    r"\u002fhome\u002falice\u002fx": r"~\u002fx",
    r"/home/alice\nnext": r"~\nnext",
    "%2Fhome%2Falice%2Fx": "~%2Fx",
    "&#x2F;home&#x2F;alice&#x2F;x": "~&#x2F;x",
    "/home/al%20ice/x": "~/x",
    "/Users/élodie.b-c_1/x": "~/x",
    "~/.claude/projects/-home-alice-work": "~/.claude/projects/~-work",
    "-Users-alice-shop": "~-shop",
    "C--Users-alice-shop": "~-shop",
    "http://localhost:5173/@fs/home/alice/x": "http://localhost:5173/@fs~/x",
}
UNCHANGED = ["https://example.com/home/news", "my-home-page", "/home/", "see /home alone", "/api/users/5", "at home"]


@pytest.mark.parametrize("text", FORMS)
def test_each_form_is_shortened(text: str) -> None:
    paths = HomePaths(PurePosixPath("/root"))
    assert paths.shorten(text) == FORMS[text]
    assert paths.count == 1


@pytest.mark.parametrize("text", UNCHANGED)
def test_other_text_stays(text: str) -> None:
    assert HomePaths(PurePosixPath("/root")).shorten(text) == text


def test_the_own_home_folder_is_shortened_wherever_it_is() -> None:
    paths = HomePaths(PurePosixPath("/srv/people/alice"))
    assert paths.shorten("/srv/people/alice/x, file:///srv/people/alice, -srv-people-alice-x") == "~/x, ~, ~-x"
    assert paths.shorten("/srv/people/alicia/x") == "/srv/people/alicia/x"
    assert HomePaths(PurePosixPath("/root")).shorten("/root/x, src/root/x") == "~/x, src/root/x"
    assert HomePaths(PureWindowsPath(r"E:\Profiles\alice")).shorten(r"e:\\profiles\\alice\\x") == r"~\\x"
    assert HomePaths(PurePosixPath("/")).shorten("/etc/passwd") == "/etc/passwd"


@pytest.mark.parametrize("part", ["/", "\\", "C:/Users/", "%2f", "/home", "-home-", "file:", "/private", "a ", "&#47;"])
def test_no_text_takes_long(part: str) -> None:
    """Half a megabyte of one repeated part takes linear time. It takes 0.3 s on a slow machine."""
    started = time.process_time()
    HomePaths(PurePosixPath("/srv/alice")).shorten("C:\\Users\\" + part * (500_000 // len(part)) + "/home")
    assert time.process_time() - started < 10
