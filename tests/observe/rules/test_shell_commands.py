"""Shell commands are compared without the additions of agents, such as filters."""

import pytest

from palaver.observe.rules.shell_commands import ShellRun, shell_runs

from ...cases import for_each
from .exchange_script import Script


def run(command: str, output: str = "", *, failed: bool = False) -> ShellRun:
    (found,) = shell_runs(Script().ran(command, output, failed=failed).turns)
    return found


@for_each(
    "line, command",
    [
        ("make test", "make test"),
        ("make test 2>&1 | tail -5  # Run the tests", "make test"),
        ("cd /srv/shop && CI=1 make test > /dev/null", "make test"),
        ("sudo make test && make lint | grep error", "make test && make lint"),
        ("cat notes.txt | wc -l", "cat notes.txt"),
        ("bundle exec rspec", "bundle exec rspec"),
        ("cmake -DCMAKE_BUILD_TYPE=Release -S .", "cmake -DCMAKE_BUILD_TYPE=Release -S ."),
        ("psql -c 'select 1; select 2' | sort", "psql -c 'select 1; select 2'"),
        ('git add . && git commit -m "Fix; all"', "git add . && git commit -m …"),
        ("git commit -m \"$(cat <<'EOF'\nFix\n\nBody\nEOF\n)\"", "git commit -m …"),
    ],
)
def test_command_has_no_folder_description_redirection_or_filter(line: str, command: str) -> None:
    """A command is shown without its folder, description, redirections, output filters and commit message."""
    assert run(line).command == command


def test_folder_of_a_command_is_the_first_folder_change() -> None:
    """The folder of a command is the one that the command line changes to first."""
    assert run("cd 'my shop' && make").folder == "my shop"
    assert run("make && cd web").folder == ""


@pytest.mark.parametrize("script", ["for f in *; do\n  rm $f\ndone", "python - <<'EOF'\nprint(1)\nEOF", ""])
def test_scripts_are_no_commands(script: str) -> None:
    """A script of several lines and an empty command line are skipped."""
    assert not list(shell_runs(Script().ran(script).turns))


def test_calls_without_a_result_and_other_tools_are_skipped() -> None:
    """Only calls of shell tools that have a result count."""
    script = Script().read("src/cart.py").edited("src/cart.py").ran("make")
    script.turns.pop()
    assert not list(shell_runs(script.turns))


@for_each(
    "command, task, base",
    [
        ("bun run test --watch", "test", "bun run test"),
        ("bun run test:unit src/cart", "test", "bun run test:unit"),
        ("npm run css:build", "build", "npm run css:build"),
        ("uv run python -m pytest -q tests/test_cart.py", "test", "uv run python -m pytest"),
        ("pnpm --filter api test -- --coverage", "test", "pnpm --filter api test"),
        ("npx tsc --noEmit", "type check", "npx tsc"),
        ("go run ./cmd/shop --port 80", "run", "go run"),
        ("make test", "test", "make test"),
        ("make -j4", "build", "make"),
        ("uvx ruff format src", "format", "uvx ruff format"),
        ("ruff check --fix", "lint", "ruff"),
        ("npm run lint:fix", "lint", "npm run lint:fix"),
        ("./node_modules/.bin/eslint .", "lint", "./node_modules/.bin/eslint"),
        ("git commit -m 'Fix test'", "", "git commit"),
        ("ls tests build", "", "ls tests build"),
        ("gh release list", "", "gh release list"),
        ("docker compose up -d web", "", "docker compose up"),
    ],
)
def test_task_of_a_command(command: str, task: str, base: str) -> None:
    """A command has the task of the first word that names one, and its base ends there."""
    (segment,) = run(command).segments
    assert (segment.task, segment.base) == (task, base)


def test_filter_hides_the_exit_status() -> None:
    """Only a successful command without an output filter proves that it succeeded."""
    assert run("make test 2>&1").proves("make test")
    assert run("make test && make lint | tail").proves("make test")
    assert not run("make test | tail -5").proves("make test")
    assert not run("make test", failed=True).proves("make test")
    assert not run("make lint").proves("make test")
