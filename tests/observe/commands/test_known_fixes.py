"""A search for an error finds the command or edit that repaired the error before."""

from palaver.archiver.store import Store
from palaver.core.home import Home
from palaver.core.reports import KnownFix, Remedy
from palaver.observe.commands.known_fixes import known_fixes
from palaver.search.archive_search import ArchiveSearch

from .shell_history import MISSING, ShellHistory

TYPES = "src/cart.ts(12,3): error TS2739: Type '{}' is missing the following properties from type 'Cart': total, lines"
LOCKED = "shopctl: the catalogue is locked by another process"


def fixes(home: Home, error: str, *projects: str) -> list[KnownFix]:
    with Store.open(home.database) as store, ArchiveSearch(home) as search:
        return known_fixes(search, store, error, projects)


def test_fix_of_most_sessions_comes_first(shell: ShellHistory) -> None:
    """A fix is counted once per session. It names both commands, the error, and the newest exchange."""
    for day in (3, 5, 4):
        shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False), day=day)
    shell.session(("npm test", MISSING, True), ("pnpm run test", "12 pass", False), day=9)

    first, second = fixes(shell.archive(), 'Missing script: "test"')

    assert (first.remedy, first.command, first.worked) == (Remedy.INSTEAD, "npm test", "bun run test")
    assert (first.sessions, first.error, first.project) == (3, MISSING, "shop")
    assert first.at == 1_772_704_800_000
    assert (second.worked, second.sessions) == ("pnpm run test", 1)


def test_edits_between_failure_and_success_are_a_fix(shell: ShellHistory) -> None:
    """If the same command succeeded after edits, the edited files are the fix."""
    failed, passed = ("npx tsc --noEmit", TYPES, True), ("npx tsc --noEmit", "", False)
    shell.session(failed, ("/home/demo/shop/src/cart.ts", "ok", False), passed)

    (found,) = fixes(shell.archive(), TYPES)

    assert (found.remedy, found.files, found.worked) == (Remedy.EDIT, ("src/cart.ts",), "")


def test_all_tests_after_a_single_one_are_a_fix(shell: ShellHistory) -> None:
    """After an edit, success at the same task counts, even of another command line."""
    failed, passed = ("pytest tests/test_cart.py", "E  KeyError: 'total'", True), ("pytest -q", "9 passed", False)
    shell.session(failed, ("/home/demo/shop/cart.py", "ok", False), passed)
    shell.session(failed, passed, day=2)

    (found,) = fixes(shell.archive(), "KeyError: 'total'")

    assert (found.remedy, found.files, found.sessions) == (Remedy.EDIT, ("cart.py",), 1)


def test_running_it_again_is_no_fix(shell: ShellHistory) -> None:
    """If the same command succeeded without a change, nothing shows what repaired the error."""
    shell.session(("shopctl load", LOCKED, True), ("ls", "shop.lock", False), ("shopctl load", "done", False))

    assert fixes(shell.archive(), "catalogue is locked") == []


def test_an_error_about_the_wrong_folder_is_fixed_by_another_folder(shell: ShellHistory) -> None:
    """A command of the same program that succeeded in another folder is the fix, and so is making a repository.

    Another error of the same program, which shares most words but no adjacent ones, is not found.
    """
    error = "fatal: not a git repository (or any of the parent directories): .git"
    lock = "fatal: Unable to create '/srv/till/.git/index.lock': File exists.\n\nAnother git process is not done here"
    shell.session(("git commit -a", lock, True), ("rm -f .git/index.lock", "", False), ("git commit -a", "ok", False))
    shell.session(("git status", error, True), ("ls", "api", False), ("cd api && git log -3", "9f2c till", False))
    shell.session(("git add .", error, True), ("git -C api add .", "", False), project="bakery")
    shell.session(("git branch", error, True), ("git init", "ok", False), ("git branch", "main", False), project="mill")
    shell.session(("git tag", error, True), ("npm test", "ok", False), ("git tag", "v1", False), project="quay")
    home = shell.archive()

    expected = {
        ("cd api && git log -3", Remedy.INSTEAD),
        ("git -C api add .", Remedy.INSTEAD),
        ("git init", Remedy.BEFORE),
    }
    assert {(each.worked, each.remedy) for each in fixes(home, "fatal: not a git repository")} == expected
    assert {(each.worked, each.remedy) for each in fixes(home, error)} == expected
    assert [each.worked for each in fixes(home, "fatal: Unable to create .git/index.lock: File exists")] == [
        "rm -f .git/index.lock"
    ]


def test_command_that_helped_is_a_fix(shell: ShellHistory) -> None:
    """A command after which the failed one succeeded is the fix."""
    shell.session(
        ("git push origin main", "error: failed to push some refs to 'origin'", True),
        ("git pull --rebase origin main", "Successfully rebased", False),
        ("git push origin main", "main -> main", False),
    )

    (found,) = fixes(shell.archive(), "failed to push some refs")

    assert (found.remedy, found.worked) == (Remedy.BEFORE, "git pull --rebase origin main")


def test_changes_before_the_success_are_a_fix(shell: ShellHistory) -> None:
    """Commands that changed something before the same command succeeded are the fix, but not those that only show."""
    failed, passed = ("make load", LOCKED, True), ("make load", "done", False)
    shell.session(failed, ("ls", "shop.lock", False), ("rm shop.lock", "", False), passed)

    (found,) = fixes(shell.archive(), LOCKED)

    assert (found.remedy, found.worked) == (Remedy.BEFORE, "rm shop.lock")


def test_other_folder_is_a_fix(shell: ShellHistory) -> None:
    """If the same command succeeded in another folder, the fix names the folder. A missing file has no fix."""
    error = "make: *** No targets specified and no makefile found."
    shell.session(("make", error, True), ("cd api && make", "done", False))
    shell.session(("cat a.txt", "cat: a.txt: No such file or directory", True), ("cd b && cat a.txt", "a", False))
    home = shell.archive()

    assert [(each.remedy, each.worked) for each in fixes(home, error)] == [(Remedy.INSTEAD, "cd api && make")]
    assert not fixes(home, "No such file or directory")


def test_long_output_is_searched_by_its_error(shell: ShellHistory) -> None:
    """A pasted output of many lines is searched by the line that says what failed."""
    shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False))
    pasted = f"> shop@1.0.0\n> starting\n\n{MISSING}\nnpm notice a new version is out\nrun `npm fund`"

    assert [each.worked for each in fixes(shell.archive(), pasted)] == ["bun run test"]


def test_other_and_unresolved_errors_have_no_fix(shell: ShellHistory) -> None:
    """An error that shares few words, that was never repaired, or that only successful output contains has no fix."""
    shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False))
    shell.session(("shopctl load", LOCKED, True))
    shell.session(("shopctl log", "warning: the clock of the till is late", False))
    home = shell.archive()

    assert not fixes(home, "missing the template engine of the script runner")
    assert not fixes(home, LOCKED)
    assert not fixes(home, "the clock of the till is late")
    assert not fixes(home, "12345")


def test_an_error_of_one_word_matches_with_its_punctuation(shell: ShellHistory) -> None:
    """`undefined:` is found in the message of a compiler, but not in a type such as `string | undefined`."""
    shell.session(
        ("go build", "./shop.go:12: undefined: Till", True), ("go build ./till", "ok", False), ("go build", "", False)
    )
    shell.session(("npm test", "text?: string | undefined; is missing", True), ("bun run test", "12 pass", False))
    home = shell.archive()

    assert [each.command for each in fixes(home, "undefined:")] == ["go build"]
    assert not fixes(home, "undefined!")


def test_words_of_a_short_error_are_adjacent(shell: ShellHistory) -> None:
    """`test failed` is not found where both words occur in unrelated lines. Punctuation does not count."""
    for command, output in (
        ("shopctl load", "error: connection failed\nerror: script test exited"),
        ("shopctl check", "ERROR: Test: failed"),
    ):
        shell.session((command, output, True), ("rm till.lock", "", False), (command, "done", False))

    assert [each.command for each in fixes(shell.archive(), "test failed")] == ["shopctl check"]


def test_project_limits_the_fixes(shell: ShellHistory) -> None:
    """Only fixes of the given projects are returned."""
    shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False))
    shell.session(("npm test", MISSING, True), ("pnpm run test", "3 pass", False), project="bakery")

    assert [each.worked for each in fixes(shell.archive(), MISSING, "bakery")] == ["pnpm run test"]


def test_a_question_in_other_words_finds_the_fix(shell: ShellHistory) -> None:
    """A question need not contain the text of the error. Words that ask for a repair do not count."""
    failed, passed = ("npx tsc --noEmit", TYPES, True), ("npx tsc --noEmit", "", False)
    shell.session(failed, ("/home/demo/shop/src/cart.ts", "ok", False), passed)
    shell.session(("npm test", MISSING, True), ("bun run test", "12 pass", False))
    home = shell.archive()

    assert [each.files for each in fixes(home, "What fixed the missing total and lines of Cart?")] == [("src/cart.ts",)]
    assert not fixes(home, "What fixed the locked database of the till?")


def test_a_more_similar_failure_without_a_fix_leaves_the_result_empty(shell: ShellHistory) -> None:
    """The fix of a less similar failure would look like the fix of the error in the question."""
    other = TYPES.replace("total, lines", "owner, colour").replace("'Cart'", "'Boat'")
    failed, passed = ("npx tsc --noEmit", TYPES, True), ("npx tsc --noEmit", "", False)
    shell.session(failed, ("/home/demo/shop/src/cart.ts", "ok", False), passed)
    shell.session(("npx tsc --noEmit", other, True), day=2)

    assert not fixes(shell.archive(), other)


def test_the_same_command_with_other_arguments_is_a_fix(shell: ShellHistory) -> None:
    """A command that succeeded after its arguments were changed is the fix, but not another test that passes."""
    ignored = "The following paths are ignored by one of your .gitignore files:\ndist"
    shell.session(
        ("git add till dist && git commit -a", ignored, True), ("git add till && git commit -a", "1 file", False)
    )
    shell.session(("pytest tests/a.py", "E  KeyError: 'total'", True), ("pytest tests/b.py", "9 passed", False))
    home = shell.archive()

    assert [(each.remedy, each.worked) for each in fixes(home, "paths are ignored by .gitignore: dist")] == [
        (Remedy.INSTEAD, "git add till && git commit -a")
    ]
    assert not fixes(home, "KeyError: 'total'")


def test_absolute_paths_are_ignored(shell: ShellHistory) -> None:
    """The folders of an absolute path differ between two computers."""
    error = "Error: /home/demo/shop/till/stock.json must contain an array"
    edit = ("/home/demo/shop/stock.py", "ok", False)
    shell.session(("make stock", error, True), edit, ("make stock", "ok", False))

    (found,) = fixes(shell.archive(), "Error: /srv/ci/7/stock.json must contain an array")

    assert (found.files, found.exact) == (("stock.py",), True)


def test_edited_files_that_the_error_names_come_first(shell: ShellHistory) -> None:
    """Of several edited files, those in the output are most likely the fix."""
    edits = [(f"/home/demo/shop/{name}", "ok", False) for name in ("README.md", "src/cart.ts")]
    shell.session(("npx tsc --noEmit", TYPES, True), *edits, ("npx tsc --noEmit", "", False))

    assert [each.files for each in fixes(shell.archive(), TYPES)] == [("src/cart.ts", "README.md")]


def test_another_folder_is_a_fix_even_if_the_command_fails_there(shell: ShellHistory) -> None:
    """The error is gone in the other folder. The project's own folder is named by its whole path."""
    shell.session(
        ("cd web", "", False),
        ("bun run lint", 'error: Script not found "lint"', True),
        ("cd /home/demo/shop && bun run lint", "Found 1 error.", True),
    )

    assert [each.worked for each in fixes(shell.archive(), 'Script not found "lint"')] == [
        "cd /home/demo/shop && bun run lint"
    ]


def test_the_words_of_the_command_alone_are_no_match(shell: ShellHistory) -> None:
    """A question that quotes a command would otherwise get the fix of any of its failures."""
    failed, passed = ("npx tsc --noEmit --strict", TYPES, True), ("npx tsc --noEmit --strict", "", False)
    shell.session(failed, ("/home/demo/shop/src/cart.ts", "ok", False), passed)

    assert not fixes(shell.archive(), "Why did npx tsc --noEmit --strict fail?")
