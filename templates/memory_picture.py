"""A memory graph as a picture: SVG that any browser shows. What memories say is text in it and can be nothing else."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, tostring

from ..core.amount import many
from ..core.memory import Edge, Relation
from .memory_layout import GAP, HEAD, PADDING, ROW, WIDTH, Box, Pictured, laid_out
from .quote import clean

SHOWN_MAX: Final = 60
"""Memories in one picture: more than that nobody takes in. The nearest are drawn."""
_MARGIN, _TOP = 24, 84
_INK: Final = {
    Relation.RELATES_TO: ("#6b7280", ""),
    Relation.SUPERSEDES: ("#2563eb", "7 4"),
    Relation.CAUSED_BY: ("#b45309", "2 4"),
    Relation.CONTRADICTS: ("#dc2626", "10 3 2 3"),
}
"""Colour and dashes of a line: each alone tells the relations apart."""
_STYLE: Final = """
text { font: 12px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif; fill: #111827 }
.head { font-size: 11px; fill: #4b5563 } .title { font-size: 16px; font-weight: 600 }
.box { fill: #ffffff; stroke: #9ca3af } .origin { fill: #fef3c7; stroke: #b45309; stroke-width: 2 }
.golden_rule { fill: #fefce8; stroke: #ca8a04 } .line { fill: none; stroke-width: 1.6 }
"""

_Ends = dict[tuple[int, str], tuple[float, float]]
"""Where each edge, by its place in the list, leaves (`source`) and arrives (`target`)."""


def picture(nodes: Sequence[Pictured], edges: Sequence[Edge]) -> str:
    """The graph around its first node. Lines are told by colour and dashes; pointing at one shows why it was drawn."""
    shown = sorted(nodes, key=lambda node: (node.depth, -node.relevance))[:SHOWN_MAX]
    names = {node.id for node in shown}
    drawn = [edge for edge in edges if edge.source_id in names and edge.target_id in names]
    boxes = laid_out(shown, drawn)
    root = _canvas(boxes, _title(nodes, shown, drawn))
    _legend(root, {edge.relation for edge in drawn})
    ground = SubElement(root, "g", transform=f"translate({_MARGIN} {_TOP})")
    ends = _ends(drawn, boxes)
    for place, edge in enumerate(drawn):
        _line(ground, edge, ends[place, "source"], ends[place, "target"], boxes)
    for box in boxes.values():
        _box(ground, box, origin=box.node.id == nodes[0].id)
    return tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _title(nodes: Sequence[Pictured], shown: Sequence[Pictured], drawn: Sequence[Edge]) -> str:
    some = f"{len(shown)} of " if len(shown) < len(nodes) else ""
    return f"Around {nodes[0].id}: {some}{many(len(nodes), 'memory', 'memories')}, {many(len(drawn), 'edge')}"


def _canvas(boxes: Mapping[str, Box], title: str) -> Element:
    width = max(box.x + WIDTH for box in boxes.values()) + 2 * _MARGIN + GAP / 2
    height = max(box.y + box.height for box in boxes.values()) + _TOP + _MARGIN
    width = max(width, 560)
    size = {"width": f"{width:.0f}", "height": f"{height:.0f}", "viewBox": f"0 0 {width:.0f} {height:.0f}"}
    root = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "aria-label": title, **size})
    SubElement(root, "style").text = _STYLE
    definitions = SubElement(root, "defs")
    for relation, (colour, _) in _INK.items():
        marker = {"viewBox": "0 0 10 10", "refX": "9", "refY": "5", "markerWidth": "7", "markerHeight": "7"}
        head = SubElement(definitions, "marker", {"id": f"to-{relation}", "orient": "auto", **marker})
        SubElement(head, "path", d="M0 0L10 5L0 10z", fill=colour)
    SubElement(root, "rect", width="100%", height="100%", fill="#f9fafb")
    SubElement(root, "text", {"x": f"{_MARGIN}", "y": "34", "class": "title"}).text = title
    return root


def _legend(root: Element, relations: set[Relation]) -> None:
    for place, relation in enumerate(each for each in Relation if each in relations):
        x = _MARGIN + place * 128
        SubElement(root, "path", {"d": f"M{x} 58H{x + 28}", **_stroke(relation)})
        SubElement(root, "text", {"x": f"{x + 34}", "y": "62", "class": "head"}).text = relation.replace("_", " ")


def _stroke(relation: Relation) -> dict[str, str]:
    colour, dashes = _INK[relation]
    return {
        "class": "line",
        "stroke": colour,
        "stroke-dasharray": dashes or "none",
        "marker-end": f"url(#to-{relation})",
    }


def _sides(edge: Edge, boxes: Mapping[str, Box]) -> Iterator[tuple[str, Box, Box, bool]]:
    """Both ends of an edge: which, its box, the other one, and whether it is on the right side of its box."""
    one, other = boxes[edge.source_id], boxes[edge.target_id]
    for end, here, there in (("source", one, other), ("target", other, one)):
        yield end, here, there, there.x >= here.x


def _ends(edges: Sequence[Edge], boxes: Mapping[str, Box]) -> _Ends:
    """Each side of a box is shared out among its lines, in the order of where they go, so that none hides another."""
    sides: defaultdict[tuple[str, bool], list[tuple[float, int, str]]] = defaultdict(list)
    for place, edge in enumerate(edges):
        for end, here, there, right in _sides(edge, boxes):
            sides[here.node.id, right].append((there.middle, place, end))
    ends: _Ends = {}
    for (name, right), lines in sides.items():
        box = boxes[name]
        for number, (_, place, end) in enumerate(sorted(lines), start=1):
            ends[place, end] = (box.x + WIDTH * right, box.y + box.height * number / (len(lines) + 1))
    return ends


def _line(
    ground: Element, edge: Edge, start: tuple[float, float], end: tuple[float, float], boxes: Mapping[str, Box]
) -> None:
    """A curve that leaves and arrives level; one between boxes of a column goes round on their right."""
    (x, y), (to_x, to_y) = start, end
    bend = GAP / 2 if boxes[edge.source_id].x != boxes[edge.target_id].x else GAP / 3
    first, last = (x + bend if right else x - bend for x, right in _bends(edge, boxes, x, to_x))
    way = f"M{x:.1f} {y:.1f}C{first:.1f} {y:.1f} {last:.1f} {to_y:.1f} {to_x:.1f} {to_y:.1f}"
    path = SubElement(ground, "path", {"d": way, **_stroke(edge.relation)})
    told = f"{edge.source_id} {edge.relation.replace('_', ' ')} {edge.target_id} ({edge.weight:g})"
    SubElement(path, "title").text = _told(f"{told}: {edge.reason}" if edge.reason else told)


def _bends(edge: Edge, boxes: Mapping[str, Box], x: float, to_x: float) -> list[tuple[float, bool]]:
    rights = [right for *_, right in _sides(edge, boxes)]
    return list(zip((x, to_x), rights, strict=True))


def _box(ground: Element, box: Box, *, origin: bool) -> None:
    node = box.node
    group = SubElement(ground, "g", transform=f"translate({box.x:.1f} {box.y:.1f})")
    SubElement(group, "title").text = _told(node.content)
    kind = "box origin" if origin else "box golden_rule" if node.type == "golden_rule" else "box"
    SubElement(group, "rect", {"width": f"{WIDTH}", "height": f"{box.height:.1f}", "rx": "8", "class": kind})
    head = SubElement(group, "text", {"x": "12", "y": f"{PADDING + HEAD - 6}", "class": "head"})
    head.text = _told(f"{node.id} · {node.type}")
    for number, row in enumerate(box.rows, start=1):
        SubElement(group, "text", {"x": "12", "y": f"{PADDING + HEAD + ROW * number - 4}"}).text = _told(row)


def _told(text: str) -> str:
    """Text as XML can hold it; which of its signs are markup is the writer's business."""
    return clean(text).replace("\ufffe", "").replace("\uffff", "")
