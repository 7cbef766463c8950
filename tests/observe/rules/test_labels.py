"""Extracted types agree with 364 exchanges labelled by hand.

The labels were written without the output of the rules and identify exchanges by session and lines.
"""

import json
import tarfile
from pathlib import Path

import pytest

from palaver.observe.rules.rule_extractor import observe

from ...shared import SAMPLES, SHARED
from .real import real_exchanges

SESSIONS = SHARED / "bench" / "coding-sessions"
LABELS = Path(__file__).with_name("labelled.json")
NOTHING = "nothing"


@pytest.mark.skipif(not (SESSIONS.is_dir() and SAMPLES.is_dir()), reason="no real transcripts here")
def test_types_agree_with_the_labels(tmp_path: Path) -> None:
    """At least 75 % of the types equal the label, and at most 10 % of the observations are labelled as not worth
    keeping.
    """
    rows = json.loads(LABELS.read_bytes())
    labelled = {(row["session"], *row["lines"]): row["types"] for row in rows}
    with tarfile.open(SESSIONS / "transcripts.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    right = typed = junk = made = seen = 0
    for folder in (tmp_path, SAMPLES):
        for read, exchange in real_exchanges(folder):
            labels = labelled.pop((read.native_id, exchange.span.start_line, exchange.span.end_line), None)
            found = observe(exchange, read).observations if labels else ()
            seen += labels is not None
            made += len(found)
            if labels and found and labels[0] == NOTHING:
                junk += len(found)
            elif labels and found:
                typed += 1
                right += found[0].type == labels[0]

    assert seen >= 200
    assert right >= 0.75 * typed
    assert junk <= 0.10 * made
