"""Measure the redaction of secrets in examples of documentation: `python -m bench.secrets [--held-out] [--list]`.

The examples of the held-out half are shown only as a figure, so that no rule is written for one of them.
"""

import argparse
import sys
from collections.abc import Sequence

from palaver.archiver.redaction import Redactor
from tests.archiver.redaction.labelled import Labelled, labelled

from .table import table

_KEY = b"0123456789abcdef"
_SEEDS = range(1, 4)
"""Each example is filled with other random values for each seed, because some values look like words by chance."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Print how many secrets are hidden, and how many examples without a secret are changed."""
    options = _options(arguments)
    half = "held_out" if options.held_out else "development"
    secrets, harmless = _examples(f"vendors_{half}"), _examples(f"vendors_harmless_{half}")
    missed, flagged = _missed(secrets), _flagged(harmless)
    rows = [
        ("secrets hidden", len(secrets) - len(missed), len(secrets)),
        ("harmless examples changed", len(flagged), len(harmless)),
    ]
    lines = [(name, str(count), str(total), f"{100 * count / total:.1f}") for name, count, total in rows]
    sys.stdout.write(table([half, "count", "of", "%"], lines) + "\n")
    if options.list and not options.held_out:
        sys.stdout.write("".join(f"{label} {entry.kind}: {entry.text!r}\n" for label, entry in _first(missed, flagged)))
    return 0


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.secrets", description=__doc__)
    parser.add_argument("--held-out", action="store_true", help="measure the other half of the examples")
    parser.add_argument("--list", action="store_true", help="list the failures of the development half")
    return parser.parse_args(arguments)


def _examples(name: str) -> list[Labelled]:
    return [entry for seed in _SEEDS for entry in labelled(name, seed)]


def _missed(entries: list[Labelled]) -> list[Labelled]:
    redactor = Redactor(_KEY)
    return [entry for entry in entries if not entry.is_hidden(redactor.redact(entry.text).text)]


def _flagged(entries: list[Labelled]) -> list[Labelled]:
    redactor = Redactor(_KEY)
    return [entry for entry in entries if redactor.redact(entry.text).findings]


def _first(missed: list[Labelled], flagged: list[Labelled]) -> list[tuple[str, Labelled]]:
    labels = [*(("missed", entry) for entry in missed), *(("changed", entry) for entry in flagged)]
    return list({(label, entry.kind): (label, entry) for label, entry in labels}.values())


if __name__ == "__main__":
    raise SystemExit(main())
