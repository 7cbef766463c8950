"""Tests of the Python client."""

import asyncio
import inspect
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import palaver
from palaver import AsyncClient
from palaver.agents.rag import RAG, RagContext
from palaver.core.errors import DocumentOutsideRoots, InvalidInput, ServerReadOnly

from .cases import for_each

PAGE = Path(__file__).parents[1] / "docs" / "python.md"
HEAVY = {"mcp", "numpy", "onnxruntime", "pydantic", "tantivy", "usearch"}


def test_the_import_of_the_package_is_cheap() -> None:
    """`import palaver` loads no library, and the client loads neither the server nor the model."""
    program = "import sys; import palaver; print(*sys.modules); palaver.AsyncClient; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    package, client = map(set, map(str.split, ran.stdout.splitlines()))

    assert HEAVY & {name.partition(".")[0] for name in package} == set()
    assert "palaver.client" not in package
    assert {"mcp", "onnxruntime", "usearch"} & {name.partition(".")[0] for name in client} == set()


def test_unknown_names_are_missing() -> None:
    """The package has only the names that it exports."""
    with pytest.raises(AttributeError, match="has no attribute 'Client'"):
        getattr(palaver, "Client")  # noqa: B009 - a plain access is a type error


@for_each("tool", RAG.tools, label=lambda tool: tool.name)
def test_methods_have_the_parameters_of_the_tools(tool: Any) -> None:
    """Each tool of the toolset is a documented method with the same parameters and defaults."""
    method = getattr(AsyncClient, tool.name)
    ours = [(name, each.default) for name, each in inspect.signature(method).parameters.items()][1:]
    theirs = [(name, each.default) for name, each in inspect.signature(tool.function).parameters.items()][1:]

    assert ours == theirs
    assert inspect.iscoroutinefunction(method)
    assert method.__doc__


def test_calls_do_not_block_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """While calls wait, the event loop runs other tasks. The calls are answered one after another."""
    gate, running, namespaces = threading.Event(), list[str](), RagContext.namespaces

    def slow(context: RagContext, scope: str | None, project_name: str | None) -> tuple[str, ...]:
        running.append(f"begin {project_name}")
        assert gate.wait(10)
        running.append(f"end {project_name}")
        return namespaces(context, scope, project_name)

    async def run() -> None:
        async with AsyncClient(tmp_path / "home", project=tmp_path) as client:
            waiting = asyncio.gather(*(client.retrieve_memories("x", project_name=name) for name in ("one", "two")))
            await asyncio.sleep(0)
            assert not waiting.done()
            gate.set()
            assert [reply["count"] for reply in await waiting] == [0, 0]

    monkeypatch.setattr(RagContext, "namespaces", slow)
    asyncio.run(run())
    assert running == ["begin one", "end one", "begin two", "end two"]


def test_errors_are_exceptions(tmp_path: Path) -> None:
    """Invalid arguments and writes in read-only mode raise Palaver's errors."""

    async def run() -> None:
        async with AsyncClient(tmp_path / "home", project=tmp_path) as client:
            await client.store_memory("I prefer tabs", "preference")
            with pytest.raises(InvalidInput, match="limit must be at most 100"):
                await client.retrieve_memories("tabs", limit=101)
        async with AsyncClient(tmp_path / "home", project=tmp_path, read_only=True) as client:
            assert (await client.retrieve_preferences("tabs"))["count"] == 1
            with pytest.raises(ServerReadOnly):
                await client.store_memory("I prefer spaces", "preference")
            assert (await client.get_memory_stats())["read_only_mode"] is True

    asyncio.run(run())


def test_the_root_of_a_file_system_is_not_indexed(tmp_path: Path) -> None:
    """A client whose project is the root of a file system cannot index arbitrary folders."""

    async def run() -> None:
        async with AsyncClient(tmp_path / "home", project="/") as client:
            with pytest.raises(DocumentOutsideRoots):
                await client.index_codebase("/usr")

    asyncio.run(run())


def test_long_memories_are_complete(tmp_path: Path) -> None:
    """Replies of the client are not truncated."""
    text = "word " * 9_000

    async def run() -> None:
        async with AsyncClient(tmp_path / "home", project=tmp_path) as client:
            for number in range(2):
                await client.store_memory(f"Note {number}: {text}", "fact")
            found = (await client.retrieve_memories("note"))["results"]
            assert {len(each["content"]) for each in found} == {len(f"Note 0: {text}")}

    asyncio.run(run())


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    """The example of docs/python.md runs as printed, and prints the output shown below it."""
    [(example, shown)] = re.findall(
        r"^```python\n(.*?)^```\n.*?^```text\n(.*?)^```", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL
    )
    source = tmp_path / "shop" / "login.py"
    source.parent.mkdir()
    source.write_text('def authenticate(name: str, password: str) -> bool:\n    """Authenticate a user."""\n    ...\n')
    environment = {"PALAVER_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": ""}
    ran = subprocess.run(
        [sys.executable, "-c", example], cwd=source.parent, env=environment, capture_output=True, text=True, check=False
    )

    assert ran.stderr == ""
    assert _plain(ran.stdout) == _plain(shown)


def test_a_script_needs_no_main_guard(tmp_path: Path) -> None:
    """A script that indexes many source files runs once, even if it calls the client at its top level."""
    project = tmp_path / "shop"
    project.mkdir()
    for number in range(80):
        (project / f"module{number}.py").write_text(f"def call_{number}():\n    return {number}\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import asyncio, palaver\n"
        "async def main():\n"
        "    async with palaver.AsyncClient() as client:\n"
        "        await client.store_memory('I prefer tabs', 'preference')\n"
        "        print((await client.index_codebase('.'))['files_indexed'])\n"
        "        print((await client.get_memory_stats())['total_memories'])\n"
        "asyncio.run(main())\n"
    )
    environment = {"PALAVER_HOME": str(tmp_path / "home"), "HOME": str(tmp_path), "PATH": ""}
    ran = subprocess.run(
        [sys.executable, str(script)], cwd=project, env=environment, capture_output=True, text=True, check=False
    )

    assert (ran.stdout.split(), ran.stderr) == (["80", "1"], "")


def _plain(output: str) -> str:
    """Replace IDs and scores, which depend on the time and on the model."""
    return re.sub(r"\b0\.\d\d\b", "0.00", re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}", "ID", output))
