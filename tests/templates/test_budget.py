"""Does every reply keep to its budget, and say how to go on?"""

from dataclasses import replace

import orjson
import pytest

from palaver.core.disclosure import Detail
from palaver.core.tokens import count
from palaver.templates.render import Renderer
from palaver.templates.shapes import details_json, results_json, transcript_json

from .samples import detail, exchange, hit, results, transcript

LONG = "words that go on and on " * 3_000


def several(number: int) -> tuple[Detail, ...]:
    told = replace(detail().observation, narrative=LONG[:2_000], facts=(LONG[:1_000],) * 3)
    return tuple(replace(detail(), id=f"obs-{place}", observation=told) for place in range(number))


@pytest.mark.parametrize("budget", [400, 1_500, 10_000])
def test_no_reply_is_dearer_than_its_budget(budget: int) -> None:
    """Whatever is stored, neither markdown nor JSON of any layer costs more."""
    found = results(*(replace(hit(n), facts=(LONG[:300],), cursor="c") for n in range(50)))
    whole = replace(transcript(output=LONG), exchanges=tuple(exchange(ordinal=n, output=LONG) for n in range(3)))
    page = Renderer(budget=budget)
    texts = [page.search(found), page.search(found, facts=True), page.read(whole)]
    shapes = [results_json(found, budget=budget), transcript_json(whole, budget=budget)]
    if budget > 1_000:
        huge = replace(detail(), observation=replace(detail().observation, narrative=LONG))
        texts += [page.observations(several(20)), page.observations([huge])]
        shapes += [details_json(several(20), budget=budget), details_json([huge], budget=budget)]

    assert all(count(text) <= budget for text in texts)
    assert all(count(orjson.dumps(shape).decode()) <= budget + 3 for shape in shapes)


def test_what_is_cut_says_how_to_go_on() -> None:
    """A page names its cursor, observations the ids that are left, a transcript its next line."""
    found = results(*(replace(hit(n), facts=(LONG[:300],), cursor=f"c{n}") for n in range(50)))
    shape, rest = results_json(found, budget=2_000), details_json(several(20), budget=2_000)["rest"]

    assert shape["next"] == f"c{shape['total'] - 1}"
    assert shape["cut"] == 50 - shape["total"]
    assert f"--cursor c{Renderer(at_shell=True, budget=800).search(found).count('obs-') - 1}" in (
        Renderer(at_shell=True, budget=800).search(found)
    )
    assert rest[-1] == "obs-19"
    assert ", ".join(rest) in Renderer(budget=2_000).observations(several(20)) or len(rest) < 20
    assert "Cut here" in Renderer(budget=600).read(transcript(output=LONG))
