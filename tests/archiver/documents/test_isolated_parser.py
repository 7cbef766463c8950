"""Parsers run in a separate process, which may hang, crash or need too much memory."""

import os
import sys
from pathlib import Path

import pytest

from palaver.archiver.documents.isolated_parser import IsolatedParser
from palaver.core.errors import DocumentUnreadable

PAGE = b"<h1>Kiln</h1><p>Heat it slowly."


def read_with(program: str, seconds: float = 60.0, data: bytes = PAGE) -> str:
    """Return the reason why a document cannot be read with a program in place of the parser."""
    with IsolatedParser([sys.executable, "-c", program], seconds) as parser:
        with pytest.raises(DocumentUnreadable) as error:
            parser.read(data, Path("x.html"))
        assert error.value.hint
        return error.value.reason


def test_one_process_reads_many_documents() -> None:
    """The process is started once, and ends with the parser."""
    with IsolatedParser() as parser:
        first, second = (parser.read(PAGE, Path(name)) for name in ("x.html", "y.html"))

    assert first == second
    assert [section.text for section in first.sections] == ["Kiln\n\nHeat it slowly."]


def test_a_parser_that_hangs_is_killed() -> None:
    """A process that hangs is killed after its time limit, even if it never reads the document."""
    hanging = "import time; time.sleep(600)"

    assert read_with(hanging, 0.3, b"x" * (1 << 20)) == "parsing takes too much time or memory"


@pytest.mark.parametrize(
    ("signal", "reason"), [("SIGPROF", "parsing takes too much time or memory"), ("SIGSEGV", "the parser crashed")]
)
def test_a_parser_that_dies_is_an_error(signal: str, reason: str) -> None:
    """A process that is killed, for example at its CPU limit, or that crashes, is reported."""
    assert read_with(f"import os, signal; os.kill(os.getpid(), signal.{signal})") == reason


def test_the_next_document_is_read_after_a_crash() -> None:
    """After a document that ended the process, a new process reads the next one."""
    with IsolatedParser() as parser:
        parser.read(PAGE, Path("x.html"))
        process = parser._process  # pyright: ignore[reportPrivateUsage]
        assert process is not None
        os.kill(process.pid, 9)
        with pytest.raises(DocumentUnreadable, match="too much"):
            parser.read(PAGE, Path("x.html"))

        assert parser.read(PAGE, Path("x.html")).sections
