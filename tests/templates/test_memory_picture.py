"""A memory graph as a picture: it shows every memory and every edge, nothing overlaps, and no text becomes markup."""

from dataclasses import dataclass
from itertools import pairwise
from xml.etree.ElementTree import Element, fromstring

from hypothesis import given
from hypothesis import strategies as st

from palaver.core.memory import Edge, Relation
from palaver.templates.memory_layout import WIDTH, laid_out, wrapped
from palaver.templates.memory_picture import SHOWN_MAX, picture

SVG = "{http://www.w3.org/2000/svg}"
TAGS = {"svg", "style", "defs", "marker", "path", "rect", "text", "title", "g"}


@dataclass(frozen=True)
class Node:
    """A memory as the picture needs it."""

    id: str
    content: str = "Use tabs"
    depth: int = 0
    relevance: float = 1.0
    type: str = "preference"


def edge(number: int, source: int, target: int, relation: Relation = Relation.RELATES_TO, reason: str = "") -> Edge:
    """An edge between the memories with these numbers."""
    return Edge(source, target, relation, 1.0, reason, id=number)


def drawn(nodes: list[Node], edges: list[Edge]) -> Element:
    """The picture as a browser reads it."""
    return fromstring(picture(nodes, edges))


def texts(root: Element) -> list[str]:
    """What is written in a picture, in order."""
    return [each.text or "" for each in root.iter(f"{SVG}text")]


TREE = [Node("mem_1"), *(Node(f"mem_{number}", depth=1 + (number > 4)) for number in range(2, 8))]
EDGES = [edge(number, 1 if number < 4 else 2, number + 1, list(Relation)[number % 4]) for number in range(1, 7)]


def test_memories_and_edges_are_all_there() -> None:
    """A box with its id and kind for each memory, a line for each edge, a legend of the relations that occur."""
    root = drawn(TREE, EDGES)

    assert sorted(told for told in texts(root) if "·" in told) == [
        f"mem_{number} · preference" for number in range(1, 8)
    ]
    lines = [
        each for each in root.iter(f"{SVG}path") if each.get("class") == "line" and each.find(f"{SVG}title") is not None
    ]
    assert len(lines) == len(EDGES)
    assert {"relates to", "supersedes", "caused by", "contradicts"} < set(texts(root))
    assert texts(root)[0] == "Around mem_1: 7 memories, 6 edges"
    assert texts(drawn(TREE[:1], [])) == ["Around mem_1: 1 memory, 0 edges", "mem_1 · preference", "Use tabs"]


def test_the_same_graph_is_the_same_picture() -> None:
    """To the byte, so that it can be kept under version control."""
    assert picture(TREE, EDGES) == picture(TREE, EDGES)


def test_why_an_edge_was_drawn_can_be_read() -> None:
    """A reader who points at a line sees both ends, the relation and the reason."""
    root = drawn(TREE[:2], [edge(1, 1, 2, Relation.CONTRADICTS, "'tabs' against 'spaces' (judged by rules)")])

    told = [each.text for each in root.iter(f"{SVG}title")]
    assert "mem_1 contradicts mem_2 (1): 'tabs' against 'spaces' (judged by rules)" in told


def test_a_large_graph_is_cut_to_what_is_nearest() -> None:
    """And says so; its edges to what is left out are left out with it."""
    nodes = [Node("mem_1"), *(Node(f"mem_{number}", depth=1, relevance=1 / number) for number in range(2, 200))]
    root = drawn(nodes, [edge(number, 1, number) for number in range(2, 200)])

    assert texts(root)[0] == f"Around mem_1: {SHOWN_MAX} of 199 memories, {SHOWN_MAX - 1} edges"
    assert f"mem_{SHOWN_MAX} · preference" in texts(root)
    assert f"mem_{SHOWN_MAX + 1} · preference" not in texts(root)


@given(st.lists(st.tuples(st.integers(1, 24), st.integers(1, 24), st.sampled_from(Relation)), max_size=60))
def test_no_box_lies_over_another(arrows: list[tuple[int, int, Relation]]) -> None:
    """Whatever hangs together with whatever: boxes of a column have room between them, and columns too."""
    nodes = [Node(f"mem_{number}", "word " * number, (number + 3) // 6) for number in range(1, 25)]
    edges = [edge(place, one, other, relation) for place, (one, other, relation) in enumerate(arrows)]
    columns: dict[float, list[tuple[float, float]]] = {}
    for box in laid_out(nodes, edges).values():
        assert box.y >= 0
        columns.setdefault(box.x, []).append((box.y, box.y + box.height))

    assert all(below - above > WIDTH for above, below in pairwise(sorted(columns)))
    for boxes in columns.values():
        assert all(lower[0] - upper[1] > 1 for upper, lower in pairwise(sorted(boxes)))


@given(st.text(), st.text(), st.text(min_size=1))
def test_text_stays_text(content: str, reason: str, kind: str) -> None:
    """Whatever a memory or a reason says, the picture is well-formed and has no element but those of a drawing."""
    root = drawn([Node("mem_1", content, type=kind), Node("mem_2", depth=1)], [edge(1, 1, 2, reason=reason)])

    assert {each.tag.removeprefix(SVG) for each in root.iter()} <= TAGS
    assert not any(name.startswith("on") or "href" in name for each in root.iter() for name in each.attrib)


def test_markup_in_a_memory_is_shown_as_it_is() -> None:
    """A script is letters."""
    root = drawn([Node("mem_1", "<script>alert(1)</script> & ]]> \x1b[31m\ufffe")], [])

    assert texts(root)[2] == "<script>alert(1)</script> & "[:28].strip()
    assert "<script" not in picture([Node("mem_1", "<script>alert(1)</script>")], [])


@given(st.text(st.sampled_from("ab 中文 wort\n"), max_size=400))
def test_a_row_is_never_broader_than_its_box(text: str) -> None:
    """Wide letters count twice; at most four rows, and nothing but the end is left out."""
    rows = wrapped(text)

    assert len(rows) <= 4
    assert all(sum(2 if letter in "中文" else 1 for letter in row) <= 28 for row in rows)
    if not "".join(rows).endswith("…"):
        assert "".join(rows).replace(" ", "") == "".join(text.split())
