"""Failed commands yield an observation if another command repaired them."""

import pytest

from palaver.core.observation import Observation, ObservationType
from palaver.observe.rules.rule_extractor import observe
from palaver.observe.rules.shell_commands import extract_repairs, without_roots

from ...cases import for_each
from .exchange_script import CWD, Script, session

NO_SCRIPT = 'Exit code 1\nnpm error Missing script: "test"\nnpm error\nnpm error To see a list of scripts, run:'
NOT_FORMATTED = "Exit code 1\n$ eslint .\nsrc/cart.ts 3:1 error quotes\n✖ 1 problem (1 error)"
REJECTED = (
    "Exit code 1\n ! [rejected] main -> main (fetch first)\nerror: failed to push some refs to 'origin'\nhint: See"
)


def repairs(script: Script) -> list[Observation]:
    return list(extract_repairs(script.exchange, session()))


def only(script: Script) -> Observation:
    (found,) = repairs(script)
    return found


def test_command_of_the_project_is_learned_from_a_failed_one() -> None:
    """Another runner that worked after a missing script is the project's command: both and the error are facts."""
    script = Script().asked("Run the tests").ran("npm test", NO_SCRIPT, failed=True).ran("bun run test", "12 pass")

    found = only(script)

    assert found.title == 'Run tests with `bun run test`; `npm test` fails: npm error Missing script: "test"'
    assert found.type is ObservationType.LEARNING
    assert found.facts == (
        "Worked: bun run test",
        "Failed: npm test",
        'Error: npm error Missing script: "test"',
    )
    assert [(proof.start_line, proof.quote) for proof in found.evidence] == [
        (4, "bun run test"),
        (2, "npm test"),
        (3, 'npm error Missing script: "test"'),
    ]


def test_repair_is_among_the_observations_of_the_exchange() -> None:
    """The rules return a repair with verified evidence. Its origin is the tool that printed the error."""
    script = Script().asked("Run the tests").ran("npm test", NO_SCRIPT, failed=True).ran("bun run test", "12 pass")

    (found,) = observe(script.exchange, session()).observations

    assert found.title.startswith("Run tests with `bun run test`")
    assert found.origin == "tool"


@pytest.mark.parametrize(
    ("failed", "error", "worked", "title"),
    [
        (
            "shopctl status --all --json",
            "error: unexpected argument '--all' found",
            "shopctl status --json",
            "Use `shopctl status --json` instead of `shopctl status --all --json`: unexpected argument '--all' found",
        ),
        (
            "shopctl index --root /var/lib/shop/catalogue --deep",
            "zsh:1: command not found: shopctl",
            "go run ./cmd/shopctl index --root /var/lib/shop/catalogue --deep",
            "Use `go run ./cmd/shopctl` instead of `shopctl`: zsh:1: command not found: shopctl",
        ),
        (
            "shopctl export orders --since 2026-01 --colour never",
            "unknown option --colour",
            "shopctl export orders --since 2026-01 --color never",
            "In `shopctl export orders --since 2026-01`, use `--color` instead of `--colour`: unknown option --colour",
        ),
        (
            "python -m pytest",
            "/usr/bin/python: No module named pytest",
            "uv run pytest",
            "Run tests with `uv run pytest`; `python -m pytest` fails: /usr/bin/python: No module named pytest",
        ),
    ],
)
def test_title_tells_the_result(failed: str, error: str, worked: str, title: str) -> None:
    """The title names the command that works, the one that fails, and the error as far as it fits."""
    script = Script().asked("Go on").ran(failed, f"Exit code 2\n{error}", failed=True).ran("ls").ran(worked, "done")

    assert only(script).title == title


def test_long_error_is_cut_between_words() -> None:
    """A title has room for the first words of a long error only."""
    error = (
        "error: unexpected argument '--all' found, because the subcommand status prints one shop at a time since 2.0"
    )
    script = Script().ran("shopctl status --all --json", error, failed=True).ran("shopctl status --json", "done")

    title = only(script).title

    assert len(title) <= 120
    assert title.endswith("unexpected argument '--all' found, because the…")


def test_folder_in_which_a_command_works() -> None:
    """If the same command works in another folder, the title names the folder relative to the project."""
    error = "Exit code 1\ngo: cannot find main module, but found .git/config in /home/dev/shop"
    script = Script().asked("Build").ran("go build ./...", error, failed=True).ran(f"cd {CWD}/api && go build ./...")

    found = only(script)

    assert found.title.startswith("Run `go build ./...` in api; elsewhere it fails: ")
    assert found.type is ObservationType.LEARNING


def test_fixer_of_a_failed_check() -> None:
    """The fixing form of a failed check that succeeds repairs it."""
    script = Script().asked("Lint").ran("npm run lint", NOT_FORMATTED, failed=True).ran("npm run lint:fix")

    found = only(script)

    assert found.title == "`npm run lint:fix` repairs what `npm run lint` reports"
    assert found.facts == ("Repaired by: npm run lint:fix", "Failed: npm run lint")


def test_command_to_run_before_the_failed_one() -> None:
    """A command that passes after one other command that prepares it was repaired by that one."""
    script = (
        Script()
        .asked("Push")
        .ran("git push origin main", REJECTED, failed=True)
        .ran("git status")
        .ran("git pull --rebase origin main", "Successfully rebased")
        .ran("git push origin main", "main -> main")
    )

    found = only(script)

    assert found.title.startswith("Run `git pull --rebase origin main` when `git push origin main` fails: ")
    assert found.type is ObservationType.DEBUG


def test_command_that_the_error_names() -> None:
    """A command that the failed output advises counts, whatever it does."""
    advice = "Exit code 1\nerror: the catalogue is locked\nRun `shopctl unlock` and try again."
    script = Script().asked("Load").ran("shopctl load", advice, failed=True).ran("shopctl unlock").ran("shopctl load")
    assert only(script).title.startswith("Run `shopctl unlock` when `shopctl load` fails: ")


@for_each(
    "script",
    [
        Script().ran("npm test", "1 failed", failed=True).edited("src/cart.ts").ran("npm test", "1 passed"),
        Script().ran("npm test", NO_SCRIPT, failed=True).edited("package.json").ran("bun run test", "1 passed"),
        Script().ran("npm test", "1 failed", failed=True).ran("npm test", "1 passed"),
        Script().ran("npm test", "1 failed", failed=True).ran("npm test -- src/cart", "1 passed"),
        Script().ran("npm test", NO_SCRIPT, failed=True).ran("bun run test", "1 failed", failed=True).ran("bun t"),
        Script().ran("npm test", NO_SCRIPT, failed=True).ran("npm run build", "done"),
        Script().ran("pytest test/a.py", "ERROR: file or directory not found", failed=True).ran("pytest tests/a.py"),
        Script().ran("shopctl load x/a.csv", "error: unknown option", failed=True).ran("shopctl load y/a.csv"),
        Script().ran("cat a.txt", "cat: unknown option", failed=True).ran("cat -n a.txt"),
        Script().ran("git commit -m x", "hook: unknown command", failed=True).ran("git commit --no-verify -m x"),
        Script().ran("npm run lint", "Sibling tool call errored", failed=True).ran("npm run lint:fix"),
        Script().ran("npm run lint", NOT_FORMATTED, failed=True).ran("npm run lint:fix", "1 error", failed=True),
        Script().ran("npm run lint", NOT_FORMATTED, failed=True).ran("npm run lint:fix | tail -5", "1 error"),
        Script().ran("make a", "error", failed=True).ran("make install").ran("make build").ran("make a"),
        Script().ran("bun run test", "$ bun test src/\nerror: 1 failed", failed=True).ran("bun test src/"),
    ],
    label=lambda script: " ; ".join(turn.text for turn in script.turns if turn.kind == "call"),
)
def test_no_repair(script: Script) -> None:
    """Edits, plain retries, mistyped paths, skipped checks, stopped calls and unproven fixers yield no repair."""
    assert not repairs(script)


def test_repetition_in_an_exchange_is_told_once() -> None:
    """The same repair is observed once in an exchange, and an exchange has at most three."""
    once = Script().asked("Test").ran("npm test", NO_SCRIPT, failed=True).ran("bun run test", "12 pass")
    twice = once.ran("npm test", NO_SCRIPT, failed=True).ran("bun run test", "13 pass")
    assert len(repairs(twice)) == 1
    many = Script()
    for number in range(5):
        many.ran(f"shopctl a{number} --x", "error: unknown option --x", failed=True).ran(f"shopctl a{number} --y")
    assert len(repairs(many)) == 3


@pytest.mark.parametrize(
    ("text", "relative"),
    [
        ("rm -rf /srv/shop/tmp", "rm -rf tmp"),
        ("git -C /srv/shop status", "git -C . status"),
        ("ls /srv/shop/ /srv/shops/a /srv/shop.old", "ls . /srv/shops/a /srv/shop.old"),
    ],
)
def test_paths_are_relative_to_the_project(text: str, relative: str) -> None:
    """Paths in the project are shown relative to it. Paths beside it and a project at the root are kept."""
    assert without_roots(text, ("/srv/shop",)) == relative
    assert without_roots(text, ("/",)) == text
