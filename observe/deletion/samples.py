"""Samples: distinctive texts of what is about to be erased, by which it is verified that nothing is left of it."""

import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import chain
from typing import Final

from ...archiver.copies.raw import RawArchive
from ...archiver.deletion.deletion_plan import DeletionPlan
from ...archiver.deletion.ownership import reading
from ...archiver.files.lines import split
from ...archiver.store import Source, Store
from ...core.conversation import Kind
from ...core.errors import CopyDamaged
from ...core.memory import StoredMemory
from .erasure_check import forms

_MOST: Final = 48
_PER_EXCHANGE: Final = 4
_TELLING = re.compile(r"\w[\w .,:/=+()#-]{14,58}\w")
"""What files hold as it is: no quotes, backslashes or line ends, which each of them escapes in its own way."""
_KINDS = (Kind.PROMPT, Kind.RESULT, Kind.PROSE, Kind.CALL)
_BLOB: Final = 4 << 20
_AT_A_TIME: Final = 200


def samples(store: Store, raw: RawArchive, plan: DeletionPlan, memories: Iterable[StoredMemory]) -> list[str]:
    """At most 48 texts that stand in what goes, and in nothing of what stays."""
    found = dict.fromkeys(chain(_of_memories(memories), _of_sessions(plan), _of_exchanges(store, plan)))
    wanted = list(found)[: 2 * _MOST]
    going = {held.key for held in memories}
    kept = [held.memory for held in store.memories.all() if held.key not in going]
    told = "\n".join(text for memory in kept for text in (memory.title, memory.content))
    wanted = [text for text in wanted if text not in told]
    for text in _told(store, plan):
        wanted = [each for each in wanted if each not in text]
    for blob in _kept(store, raw, plan):
        wanted = [text for text in wanted if not any(form in blob for form in forms(text))]
    return wanted[:_MOST]


def _of_exchanges(store: Store, plan: DeletionPlan) -> Iterator[str]:
    """From every part of what goes, prompts and what tools printed first."""
    keys = sorted(plan.selected.exchanges)
    for key in keys[:: max(1, len(keys) // _MOST)]:
        for stored in store.exchanges.load([key]).values():
            turns = sorted(
                stored.exchange.turns, key=lambda turn: _KINDS.index(turn.kind) if turn.kind in _KINDS else 9
            )
            texts = (max(_TELLING.findall(turn.text), key=len, default="") for turn in turns)
            yield from list(dict.fromkeys(filter(None, texts)))[: max(_PER_EXCHANGE, _MOST // len(keys))]
        for learned in store.observations.of_exchange(key)[:1]:
            yield from _TELLING.findall(learned.observation.title)[:1]


def _of_sessions(plan: DeletionPlan) -> Iterator[str]:
    for number in sorted(plan.selected.sessions)[: _MOST // 4]:
        session = plan.selector.sessions[number]
        yield from (text for text in (session.native_id, session.title) if _TELLING.fullmatch(text))


def _of_memories(memories: Iterable[StoredMemory]) -> Iterator[str]:
    for held in memories:
        yield from _TELLING.findall(held.memory.content)[:1]


def _told(store: Store, plan: DeletionPlan) -> Iterator[str]:
    """What is known of everything that stays. Calls, titles and the like are worded here: no line holds them so."""
    selected = plan.selected
    yield "\n".join(each.title for number, each in plan.selector.sessions.items() if number not in selected.sessions)
    keys = [key for key in store.items.all_keys() if key not in selected.exchanges]
    for start in range(0, len(keys), _AT_A_TIME):
        part = keys[start : start + _AT_A_TIME]
        said = (turn.text for stored in store.exchanges.load(part).values() for turn in stored.exchange.turns)
        learned = store.observations.load(part).values()
        kept = (each.observation for each in learned if each.exchange not in selected.exchanges)
        yield "\n".join(chain(said, *((it.title, it.subtitle, it.narrative, *it.facts) for it in kept)))


def _kept(store: Store, raw: RawArchive, plan: DeletionPlan) -> Iterator[bytes]:
    """Yield all lines that stay, some megabytes at a time, and what other deletions can still restore."""
    yield from store.deleted_rows.texts()
    for number, source in plan.selector.sources.items():
        if number not in plan.selected.sources:
            with suppress(CopyDamaged):  # what nobody can read any more says nothing
                yield from _blobs(raw, source, plan)


def _blobs(raw: RawArchive, source: Source, plan: DeletionPlan) -> Iterator[bytes]:
    held: list[bytes] = [str(source.path).encode("utf-8", "replace")]
    size = 0
    with reading(raw, source.archived) as file:
        for line in split(file):
            if plan.goes(source, line.number):
                continue
            held.append(line.data)
            size += len(line.data)
            if size > _BLOB:
                yield b"\n".join(held)
                held, size = [], 0
    yield b"\n".join(held)
