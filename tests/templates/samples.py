"""Sample values of the three layers."""

from pathlib import Path
from typing import Any

from palaver.core.conversation import Exchange, Kind, SessionKind, Span, Speaker, Turn
from palaver.core.observation import Evidence, Observation, ObservationType
from palaver.core.query import Query
from palaver.core.results import Detail, Hit, Results, TranscriptExcerpt
from palaver.templates.render import Renderer

NOON = 1_764_592_200_000
"""2025-12-01 12:30 UTC."""
DAY = 86_400_000
NONCE = "12345678"
OPEN, CLOSE = f"<recalled-{NONCE}>", f"</recalled-{NONCE}>"
"""The marker around recalled text, as `renderer` writes it."""


def renderer(*folder: Path, **options: Any) -> Renderer:
    """Return a renderer with a fixed number in its markers."""
    return Renderer(*folder, **options, new_nonce=lambda: NONCE)


def hit(number: int = 1, *, title: str = "Implement JWT authentication middleware", project: str = "my-api") -> Hit:
    """Return a hit of layer 1."""
    return Hit(
        id=f"obs-{1040 + number}",
        kind="observation",
        type="decision",
        title=title,
        project=project,
        at=NOON - number * DAY,
        score=0.9 - number / 100,
        similarity=0.7123456,
        session_id="5e0c",
        path="claude-code/my-api/5e0c.jsonl",
        start_line=3,
        end_line=40,
        tokens=170 + 10 * number,
        facts=("Chose JWT over sessions: the API keeps no state", "Refresh tokens rotate"),
        snippet="so that the API stays stateless",
    )


def results(*hits: Hit, query: Query | None = None) -> Results:
    """Return results of layer 1."""
    return Results(query or Query(("authentication",)), hits, len(hits), index_lag=0, searched=("text", "vector"))


def detail(text: str = "", **changed: str) -> Detail:
    """Return an entry of layer 2 with `text` at the end of every stored field."""
    return Detail(
        id="obs-1041",
        kind="observation",
        observation=Observation(
            type=ObservationType.DECISION,
            title=f"Implement JWT authentication middleware{text}",
            subtitle=f"Chose JWT over sessions for scale{text}",
            narrative=f"Both were tried. JWT won because:\n\n- no state on the server\n- expiry is built in{text}",
            facts=(f"Refresh tokens rotate{text}", f"HS256, as there is one service{text}"),
            concepts=(f"JWT{text}", f"middleware{text}"),
            files_read=(f"docs/auth.md{text}",),
            files_modified=(f"src/auth.ts{text}",),
            evidence=(Evidence(12, 14, f"let us take JWT{text}"),),
            at=NOON,
            origin="human",
        ),
        project=f"my-api{text}",
        branch=f"main{text}",
        session_id="5e0c",
        session_title=f"Authentication{text}",
        path=changed.get("path", "claude-code/my-api/5e0c.jsonl"),
        start_line=3,
        end_line=40,
        tokens=900,
    )


def exchange(text: str = "", *, ordinal: int = 0, output: str = "2 passed") -> Exchange:
    """Return an exchange with a prompt, a thought, two calls, their results, and an answer."""
    human, agent, tool = Speaker.HUMAN, Speaker.ASSISTANT, Speaker.TOOL
    turns = (
        Turn(3, human, Kind.PROMPT, f"How should I implement authentication?{text}"),
        Turn(4, Speaker.HOST, Kind.INJECTED, f"Today is Monday.{text}"),
        Turn(5, agent, Kind.PROSE, f"Let me run the tests first.{text}"),
        Turn(6, agent, Kind.CALL, f"pytest -q{text}", tool=f"Bash{text}", call="c1"),
        Turn(7, agent, Kind.CALL, f"src/auth.ts{text}", tool="Read", call="c2"),
        Turn(8, tool, Kind.RESULT, f"{output}{text}", call="c1"),
        Turn(9, tool, Kind.RESULT, f"no such file{text}", call="c2", failed=True),
        Turn(10, tool, Kind.RESULT, f"left over{text}", call="c0"),
        Turn(11, human, Kind.PROMPT, f"Use sessions.{text}", active=False),
        Turn(12, agent, Kind.PROSE, f"JWT it is:\n\n```ts\n# not a heading\nsign(user)\n```{text}"),
    )
    return Exchange(ordinal, Span(3, 12, 0, 900), turns, NOON, NOON + 60_000, "/home/dev/my-api", "main")


def transcript(text: str = "", *, parent: str = "", cut: bool = False, output: str = "2 passed") -> TranscriptExcerpt:
    """Return a transcript of layer 3."""
    return TranscriptExcerpt(
        path="claude-code/my-api/5e0c.jsonl",
        session_id=f"5e0c{text}",
        kind=SessionKind.SUBAGENT if parent else SessionKind.MAIN,
        parent_id=parent and f"{parent}{text}",
        agent="claude-code",
        project=f"my-api{text}",
        cwd=f"/home/dev/my-api{text}",
        branch=f"main{text}",
        version=f"2.0.1{text}",
        title=f"Authentication{text}",
        pull_request="",
        started=NOON,
        start_line=1,
        end_line=12 if cut else 20,
        total_lines=20,
        exchanges=(exchange(text, output=output),),
        tokens=200,
        next_line=13 if cut else None,
    )
