"""Functions of installed packages without their docstrings, which serve as the queries."""

import ast
import hashlib
import importlib.util
import textwrap
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

from ..shared import SetMissing

PACKAGES = (
    "_pytest anthropic anyio attr click cryptography fsspec google hatchling huggingface_hub hypothesis jinja2"
    " jsonschema markdown_it mcp numpy packaging pip pydantic pygments pypdf rich setuptools starlette tqdm uvicorn"
).split()
"""Packages of the development environment. Their versions are in constraints.txt or follow from them."""
COUNT = 1_200
_WORDS_MIN, _STATEMENTS_MIN, _LENGTH_MAX = 4, 2, 6_000
"""Limits for a function: words of its summary, statements without the docstring, and characters."""

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class DescribedFunction(NamedTuple):
    """Function without its docstring, and the first paragraph of the docstring."""

    name: str
    code: str
    summary: str


def described_functions() -> list[DescribedFunction]:
    """Return `COUNT` functions in the order of a hash of their names, each with a different summary.

    Raises:
        SetMissing: The installed packages have too few functions.
    """
    found = {each.summary.lower(): each for name in PACKAGES for each in _of_package(name)}
    chosen = sorted(found.values(), key=lambda each: hashlib.sha256(each.name.encode()).digest())[:COUNT]
    if len(chosen) < COUNT:
        raise SetMissing(f"only {len(chosen)} functions with docstrings are installed; run `make test` first")
    return chosen


def _of_package(name: str) -> Iterator[DescribedFunction]:
    spec = importlib.util.find_spec(name)
    for folder in sorted(spec.submodule_search_locations or ()) if spec else ():
        for file in sorted(Path(folder).rglob("*.py")):
            if "tests" not in file.parts:
                yield from _of_module(file, f"{name}/{file.relative_to(folder)}")


def _of_module(file: Path, place: str) -> Iterator[DescribedFunction]:
    try:
        source = file.read_text("utf-8")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Third-party code has invalid escapes.
            tree = ast.parse(source)
    except (SyntaxError, UnicodeDecodeError):
        return
    rows = source.split("\n")
    for node in ast.walk(tree):
        if isinstance(node, _Function) and len(node.body) > _STATEMENTS_MIN and (text := ast.get_docstring(node)):
            summary = " ".join(text.split("\n\n")[0].split())
            code = _without_docstring(node, rows)
            if len(summary.split()) >= _WORDS_MIN and summary.isascii() and len(code) <= _LENGTH_MAX:
                yield DescribedFunction(f"{place}:{node.lineno}", code, summary)


def _without_docstring(node: _Function, rows: list[str]) -> str:
    docstring, end = node.body[0], node.end_lineno or node.lineno
    after = docstring.end_lineno or docstring.lineno
    return textwrap.dedent("\n".join(rows[node.lineno - 1 : docstring.lineno - 1] + rows[after:end]))
