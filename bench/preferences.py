"""Measure how well stated preferences are proposed as memories, by language: `python -m bench.preferences FILE`.

FILE is a JSON list of {"language", "prompt", "preference"}. An empty preference means that nothing may be proposed.
Each prompt is archived as a separate session, and the proposals for review are compared with the preference.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson

from palaver.archiver.store import Source, Store
from palaver.core.conversation import Exchange, Kind, Session, Span, Speaker, Turn
from palaver.observe.extraction.preferences import preference_candidates

from .table import table


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print. List missed and false proposals."""
    parser = argparse.ArgumentParser(prog="python -m bench.preferences", description=__doc__)
    parser.add_argument("file", type=Path)
    examples: list[dict[str, Any]] = orjson.loads(parser.parse_args(arguments).file.read_bytes())
    stated, found, false = Counter[str](), Counter[str](), Counter[str]()
    looked = Counter(each["language"] for each in examples if not each["preference"])
    for number, each in enumerate(examples):
        proposals, wanted = proposals_for(each["prompt"]), each["preference"]
        hits = [text for text in proposals if wanted and is_match(text, wanted)]
        stated[each["language"]] += bool(wanted)
        found[each["language"]] += bool(hits)
        false[each["language"]] += len(proposals) - len(hits)
        if wanted and not hits:
            print(f"{number} missed: {wanted}")
        for text in proposals:
            if text not in hits:
                print(f"{number} false: {text}")
    rows = [
        [name, f"{found[name]} of {stated[name]}", str(looked[name]), str(false[name])]
        for name in sorted(stated | looked)
    ]
    rows.append(["all", f"{found.total()} of {stated.total()}", str(looked.total()), str(false.total())])
    print(table(["language", "found", "look-alikes", "false proposals"], rows))
    print(f"Recall: {found.total() / max(stated.total(), 1):.2f}")
    return 0


def proposals_for(prompt: str) -> list[str]:
    """Return the contents of the proposals for one archived prompt."""
    with TemporaryDirectory() as folder, Store.create(Path(folder) / "palaver.db") as store:
        with store.transaction():
            session = store.sessions.save(Session("bench", "one", project="shop"))
            path = Path("/bench/one.jsonl")
            source = store.sources.save(Source("bench", path, "bench/one.jsonl", 0, 0, 0, 0, b"", b"", session=session))
            turn = Turn(1, Speaker.HUMAN, Kind.PROMPT, prompt)
            store.exchanges.replace(session, source, 0, [Exchange(0, Span(1, 1, 0, 0), (turn,), None, None)])
        return [each.memory.content for each in preference_candidates(store)]


def is_match(proposed: str, wanted: str) -> bool:
    """Return whether a proposal is the wanted sentence, or contains it, or is contained in it."""
    return wanted in proposed or proposed in wanted


if __name__ == "__main__":
    sys.exit(main())
