"""Tests of how text matches and vector matches become one score."""

from collections.abc import Sequence
from itertools import permutations
from statistics import fmean
from typing import NamedTuple, TypeAlias

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from palaver.search.index.matches import Flags, Floats, Integers, TextMatch, TextMatches, VectorMatches
from palaver.search.rank import fusion
from palaver.search.rank.fusion import AdjacentTerms, Event, LateInteraction, Weights, Wording


class VectorMatch(NamedTuple):
    """Row of `VectorMatches`."""

    item: int
    event: int
    part: int
    similarity: float


Found: TypeAlias = tuple[Sequence[TextMatch], Sequence[VectorMatch]]


def gather(
    matches: Sequence[TextMatch],
    vectors: Sequence[VectorMatch],
    compare: LateInteraction | None = None,
    adjacent_terms: AdjacentTerms | None = None,
    waiting: Sequence[int] = (),
    rewordings: Sequence[Found] = (),
    reranked: int = fusion.RERANKED,
) -> list[Event]:
    return fusion.fuse(
        *wording((matches, vectors)),
        compare,
        adjacent_terms,
        waiting=np.array(waiting, dtype=np.int64),
        rewordings=[wording(each) for each in rewordings],
        reranked=reranked,
    )


def wording(found: Found) -> Wording:
    matches, vectors = found
    numbers = np.array([match[:7] for match in matches], dtype=np.int64).reshape(-1, 7).T
    rows = np.array([near[:3] for near in vectors], dtype=np.int64).reshape(-1, 3).T
    return Wording(
        TextMatches(numbers, np.array([match.fraction for match in matches])),
        VectorMatches(rows, np.array([near.similarity for near in vectors])),
    )


def text_match(event: int, own: bool, fraction: float) -> TextMatch:
    return TextMatch(event if own else event + 100, event, 1, event, 1, 2, False, fraction)


def vector(event: int, own: bool, part: int, cosine: float) -> VectorMatch:
    return VectorMatch(event if own else event + 100, event, part, cosine)


def place(near: VectorMatch) -> tuple[int, int]:
    return near.item, near.part


events = st.integers(1, 6)
texts = st.lists(st.builds(text_match, events, st.booleans(), st.floats(0, 1)), max_size=12)
vectors = st.lists(
    st.builds(vector, events, st.booleans(), st.integers(0, 2), st.floats(-1, 1)), max_size=12, unique_by=place
)


def match(event: int, fraction: float, *, item: int | None = None, ordinal: int | None = None) -> TextMatch:
    own, place = event if item is None else item, event if ordinal is None else ordinal
    return TextMatch(own, event, 1, place, 1, 2, False, fraction)


@given(texts, vectors)
def test_a_score_is_the_sum_of_its_parts(matches: list[TextMatch], vectors: list[VectorMatch]) -> None:
    """The score is the weighted sum of text, prompt and best cosine, is between 0 and 1, and orders the list."""
    found = gather(matches, vectors)

    for event in found:
        words = max((one.fraction for one in matches if one.event == event.key), default=0.0)
        cosines = [near.similarity for near in vectors if near.event == event.key]
        prompt = max((near.similarity for near in vectors if (near.item, near.part) == (event.key, 0)), default=0.0)
        weights = Weights(late_interaction=0.0, adjacent_terms=0.0)
        parts = (
            weights.words * words**1.5,
            weights.prompt * max(0.0, prompt),
            weights.semantic * max(0.0, max(cosines, default=0.0)),
        )
        assert event.score == pytest.approx(sum(parts) / sum(weights))
        assert sum(part.points for part in event.parts) == event.score
        assert 0 <= event.score <= 1
        assert event.similarity == max(cosines, default=None)
    assert {event.key for event in found} == {*(one.event for one in matches), *(near.event for near in vectors)}
    assert [(-event.score, event.key) for event in found] == sorted((-event.score, event.key) for event in found)


@given(texts, vectors)
def test_the_order_of_input_does_not_matter(matches: list[TextMatch], vectors: list[VectorMatch]) -> None:
    """The same matches in another order give the same events with the same scores."""
    again = gather(matches[::-1], vectors[::-1])

    assert [(event.key, event.score) for event in gather(matches, vectors)] == [
        (event.key, event.score) for event in again
    ]


@pytest.mark.parametrize("order", [*permutations([3, 1, 2])])
def test_equal_scores_are_ordered_by_key(order: tuple[int, ...]) -> None:
    """Events with the same score are ordered by their key."""
    events = gather([TextMatch(key, key, key, 0, 1, 2, False, 0.5) for key in order], [])

    assert [event.key for event in events] == [1, 2, 3]


def test_partial_matches_count_less_in_code() -> None:
    """Code that contains all words counts like prose. Code with only some of the words counts much less."""
    prose, code = (TextMatch(key, key, 0, 0, 1, 2, key == 2, 0.25) for key in (1, 2))
    [told, _], [whole] = gather([prose, code], []), gather([code._replace(fraction=1.0)], [])

    assert [event.key for event in gather([prose, code], [])] == [1, 2]
    assert told.score == pytest.approx(8 * gather([code], [])[0].score)
    assert whole.score == gather([prose._replace(fraction=1.0)], [])[0].score
    assert whole.parts[0].points == whole.score


def test_weights_can_be_zero() -> None:
    """A part of the score with weight 0 does not change the ranking and is not listed."""
    vectors = VectorMatches(np.array([[1], [1], [0]]), np.array([0.5]))
    [event] = fusion.fuse(TextMatches.none(), vectors, weights=Weights(prompt=0.0))

    assert event.score == sum(part.points for part in event.parts)
    assert {part.name: part.points for part in event.parts}["prompt"] == 0


def closeness_by_part(vectors: VectorMatches) -> Floats:
    """Return a late-interaction score that grows with the part and the event, and NaN for observations."""
    return np.where(vectors.item == vectors.event, vectors.part / 2 + vectors.event / 100, np.nan)


def adjacent_scores(items: Integers) -> Floats:
    """Return an adjacent-term score that grows with the item key."""
    return items / 200


@given(texts, vectors)
def test_late_interaction_adds_up(matches: list[TextMatch], vectors: list[VectorMatch]) -> None:
    """With late interaction, the score is exactly the sum of its parts, is between 0 and 1, and orders the list."""
    found, before = gather(matches, vectors, closeness_by_part, adjacent_scores), gather(matches, vectors)
    own = [near for near in vectors if near.item == near.event]
    best = {
        event.key: max((near.part / 2 + near.event / 100 for near in own if near.event == event.key), default=None)
        for event in found
    }
    cosine = {event.key: event.similarity or 0.0 for event in found}
    in_code = {event.key for event in found if event.best_match is not None and event.best_match.in_code}
    told = {key: cosine[key] if key in in_code else value for key, value in best.items() if value is not None}
    mean = fmean(told.values()) if told else 0.0

    assert {event.key for event in found} == {event.key for event in before}
    for event in found:
        assert sum(part.points for part in event.parts) == event.score
        assert 0 <= event.score <= 1
        assert event.plain == next(one.score for one in before if one.key == event.key)
        assert event.late_interaction == pytest.approx(max(0.0, told.get(event.key, mean)))
        assert event.adjacent_terms == (event.best_match.key / 200 if event.best_match else 0.0)
    assert [(-event.score, event.key) for event in found] == sorted((-event.score, event.key) for event in found)


def test_only_the_first_events_are_re_ranked() -> None:
    """Events outside the re-ranked set get the lowest re-ranking score, so that they cannot pass re-ranked events."""
    requested: list[list[int]] = []

    def compare(vectors: VectorMatches) -> Floats:
        requested.append(vectors.event.tolist())
        return np.array([{1: 0.2, 2: 0.9}[event] for event in vectors.event.tolist()])

    found = gather([], [vector(1, True, 0, 0.8), vector(2, True, 0, 0.7), vector(3, True, 0, 0.6)], compare, reranked=2)

    assert requested == [[1, 2]]
    assert [(event.key, event.late_interaction) for event in found] == [(2, 0.9), (1, 0.2), (3, 0.2)]


def test_unknown_late_interaction_is_the_mean() -> None:
    """An event without stored token embeddings gets the mean late interaction of the re-ranked events."""
    known = {1: 0.2, 2: 0.6, 3: np.nan, 4: np.nan}

    found = gather(
        [],
        [vector(event, True, 0, 0.9 - event / 10) for event in known],
        lambda vectors: np.array([known[event] for event in vectors.event.tolist()]),
        reranked=3,
    )

    assert {event.key: round(event.late_interaction, 9) for event in found} == {1: 0.2, 2: 0.6, 3: 0.4, 4: 0.2}


def test_an_event_without_vectors_gets_the_similarity_of_its_text_rank() -> None:
    """An event that is not embedded yet gets the semantic score of the event at the same rank of the text matches. The
    best match gets the best score, and the second match the second score. Its similarity stays None.
    """
    matches = [
        match(event, fraction, ordinal=9 * event) for event, fraction in ((1, 0.2), (2, 0.5), (7, 0.9), (8, 0.3))
    ]
    vectors = [
        vector(1, True, 0, 0.7),
        vector(2, True, 0, 0.6),
        vector(3, True, 0, 0.4),
        vector(3, True, 1, 0.8),
    ]

    found = {event.key: event for event in gather(matches, vectors, closeness_by_part, waiting=[7, 8])}

    assert (found[7].prompt, found[7].late_interaction) == (0.7, max(found[key].late_interaction for key in (1, 2, 3)))
    assert (found[8].prompt, found[8].late_interaction) == (
        0.6,
        sorted(found[key].late_interaction for key in (1, 2, 3))[1],
    )
    assert [{part.name: part.value for part in found[key].parts}["semantic"] for key in (7, 8)] == [0.8, 0.7]
    assert (found[7].similarity, found[7].semantic) == (None, 0.0)
    assert next(iter(found)) == 7


@given(texts, vectors)
def test_estimated_scores_add_up(matches: list[TextMatch], vectors: list[VectorMatch]) -> None:
    """With estimated semantic scores, the score is exactly the sum of its parts. Embedded events have the same score
    as without the estimate.
    """
    waiting = sorted({one.event for one in matches} - {near.event for near in vectors})
    found, before = gather(matches, vectors, waiting=waiting), gather(matches, vectors)
    now = {event.key: event.score for event in found}

    assert all(sum(part.points for part in event.parts) == event.score <= 1 for event in found)
    assert all(now[event.key] >= event.score for event in before)
    assert all(now[event.key] == event.score for event in before if event.key not in waiting)


@given(texts, vectors, st.sets(events), st.sets(events))
@example([match(1, 0.9), match(3, 0.1), match(5, 0.5)], [vector(1, True, 0, 0.1), vector(3, True, 0, 0.8)], {3, 5}, {5})
def test_a_filter_makes_no_event_more_relevant(
    matches: list[TextMatch], vectors: list[VectorMatch], left: set[int], unembedded: set[int]
) -> None:
    """Under a filter there are fewer events, and none has a higher plain score than without the filter."""
    waiting, vectors = sorted(unembedded), [near for near in vectors if near.event not in unembedded]
    every = {event.key: event.plain for event in gather(matches, vectors, waiting=waiting)}
    some = gather(
        [one for one in matches if one.event in left],
        [near for near in vectors if near.event in left],
        waiting=waiting,
    )

    assert all(event.plain <= every[event.key] for event in some)


def test_late_interaction_of_code_is_its_best_cosine() -> None:
    """Names and keywords make all code similar, so the best cosine replaces the late interaction of code."""
    vectors = [
        vector(1, True, 0, 0.3),
        vector(1, True, 1, 0.5),
        vector(2, True, 0, 0.4),
        vector(3, True, 0, -0.2),
    ]
    matches = [match(event, 0.2)._replace(in_code=event != 2) for event in (1, 2, 3)]

    found = gather(matches, vectors, lambda found: np.full(len(found), 0.9))

    assert {event.key: event.late_interaction for event in found} == {1: 0.5, 2: 0.9, 3: 0.0}


def test_adjacent_terms_score_higher() -> None:
    """If two events match equally, the event with adjacent terms comes first. Code and events outside the re-ranked
    set are not checked.
    """
    requested: list[list[int]] = []

    def together(items: Integers) -> Floats:
        requested.append(items.tolist())
        return np.array([{11: 0.0, 2: 0.8}[item] for item in items.tolist()])

    code = match(3, 0.9)._replace(in_code=True)
    found = gather(
        [match(1, 0.6, item=11), match(1, 0.5), match(2, 0.6), code, match(4, 0.1)],
        [],
        adjacent_terms=together,
        reranked=3,
    )

    assert requested == [[11, 2]]
    assert {event.key: event.adjacent_terms for event in found} == {1: 0.0, 2: 0.8, 3: 0.0, 4: 0.0}
    assert [event.key for event in found if event.key < 3] == [2, 1]


def test_the_first_event_of_a_wording_alone_scores_higher() -> None:
    """Of two equal events, the one that a wording alone ranks first comes first, and its parts show why."""
    vectors = VectorMatches(np.array([[1, 2], [1, 2], [0, 0]]), np.array([0.5, 0.5]))

    first, other = fusion.fuse(TextMatches.none(), vectors, is_first=lambda keys: keys == 2)

    assert (first.key, other.key) == (2, 1)
    assert [part.value for part in first.parts if part.name == "first"] == [1.0]
    assert sum(part.points for part in first.parts) == first.score
    assert (first.plain, first.evidence) == (other.plain, other.evidence)


def test_weak_results_are_not_re_ranked() -> None:
    """Results are re-ranked only if the best plain score is high enough."""
    vectors = VectorMatches(np.array([[1, 2], [1, 2], [0, 0]]), np.array([0.5, 0.4]))
    [best, other] = fusion.fuse(TextMatches.none(), vectors)

    weak = fusion.fuse(TextMatches.none(), vectors, closeness_by_part, adjacent_scores, rerank_from=best.score + 1e-9)
    strong = fusion.fuse(TextMatches.none(), vectors, closeness_by_part, rerank_from=best.score)

    assert [(one.key, one.score, one.late_interaction) for one in weak] == [(1, best.score, 0.0), (2, other.score, 0.0)]
    assert {one.key: one.late_interaction for one in strong} == {1: 0.01, 2: 0.02}


def test_without_token_embeddings_scores_do_not_change() -> None:
    """If a model has no token embeddings, the score consists of the other parts."""
    matches, vectors = [match(1, 0.5), match(2, 0.3)], [vector(1, True, 0, 0.4), vector(3, True, 0, 0.9)]
    without = gather(matches, vectors, lambda found: np.full(len(found), np.nan))

    assert [(one.key, one.score, one.late_interaction) for one in without] == [
        (one.key, one.score, 0.0) for one in gather(matches, vectors)
    ]


def test_a_negative_cosine_counts_as_zero() -> None:
    """A negative cosine is shown as the similarity and does not lower the score."""
    [event] = gather([], [VectorMatch(1, 1, 0, -0.4)])

    assert (event.similarity, event.semantic, event.score) == (-0.4, 0.0, 0.0)


def test_without_vectors_the_similarity_is_none() -> None:
    """An event without vectors has no similarity, instead of 0."""
    assert gather([match(1, 0.5)], [])[0].similarity is None


def test_each_item_has_its_own_scores() -> None:
    """The text score and similarity of an item do not include those of other items of the event."""
    matches = [match(1, fraction, item=item) for fraction, item in ((0.3, 11), (0.6, 1), (0.2, 11))]
    [event] = gather(matches, [VectorMatch(11, 1, 0, 0.5)])

    assert (event.words, event.words_of(11), event.score_of(11), event.score_of(12)) == (0.6, 0.3, 0.8, 0.0)


def test_the_first_of_equal_matches_represents_an_event() -> None:
    """If two matches are equal, the first match in the order of the text index gives the lines of the event."""
    first, second = TextMatch(7, 7, 1, 0, 5, 6, False, 0.5), TextMatch(7, 7, 1, 0, 1, 2, False, 0.5)

    assert [event.best_match for event in gather([first, second, match(7, 0.1)], [])] == [first]


def test_an_item_scores_by_its_best_entry_and_vector() -> None:
    """The score of an item uses its best text match and its best cosine. A negative cosine counts as zero."""
    first, second = match(1, 0.2), match(1, 0.6)
    [event] = gather(
        [first, second], [VectorMatch(1, 1, 0, 0.5), VectorMatch(1, 1, 1, 0.3), VectorMatch(9, 1, 0, -0.4)]
    )

    assert event.score_of(1) == 0.6 + 0.5
    assert event.words_of(9) == event.score_of(9) == event.score_of(8) == 0.0


wordings = st.lists(st.tuples(texts, vectors), min_size=1, max_size=4)


@given(texts, vectors, wordings)
def test_the_score_of_several_wordings_adds_up(
    matches: list[TextMatch], vectors: list[VectorMatch], others: list[Found]
) -> None:
    """The score is exactly the sum of its parts, is between 0 and 1, and contains the events of all wordings."""
    found = gather(matches, vectors, closeness_by_part, adjacent_scores, rewordings=others)
    every = [(matches, vectors), *others]

    assert {event.key for event in found} == {each.event for one in every for column in one for each in column}
    for event in found:
        assert sum(part.points for part in event.parts) == event.score
        assert 0 <= event.score <= 1
        assert event.words == max((event.words_of(item) for item in (event.key, event.key + 100)), default=0.0)


@given(texts, vectors, wordings)
def test_the_plain_score_is_the_mean_over_the_wordings(
    matches: list[TextMatch], vectors: list[VectorMatch], others: list[Found]
) -> None:
    """The plain score of an event is the mean of its plain scores for each wording."""
    every = [(matches, vectors), *others]
    singly = [{event.key: event.plain for event in gather(*one)} for one in every]

    for event in gather(matches, vectors, rewordings=others):
        assert event.plain == pytest.approx(fmean(one.get(event.key, 0.0) for one in singly), abs=1e-12)


def test_an_event_of_all_wordings_ranks_before_an_event_of_one() -> None:
    """Two fair matches of two wordings count more than a better match of only one of them."""
    first = [match(1, 0.4), match(2, 0.6)], list[VectorMatch]()
    second = [match(1, 0.4)], list[VectorMatch]()

    assert [event.key for event in gather(*first, rewordings=[second])] == [1, 2]
    assert [event.key for event in gather(*first)] == [2, 1]


def test_the_best_wording_gives_the_lines_of_an_event() -> None:
    """The best text match of all wordings represents an event."""
    found = gather([match(1, 0.3, ordinal=1)], [], rewordings=[([match(1, 0.7, ordinal=2)], [])])

    assert [event.best_match and event.best_match.ordinal for event in found] == [2]


@given(texts, vectors, st.sets(events))
def test_the_project_of_the_searcher_adds_up(
    matches: list[TextMatch], vectors: list[VectorMatch], ours: set[int]
) -> None:
    """Events of the searcher's project rank higher by one equal part, which counts towards no other value."""

    def in_project(keys: Integers) -> Flags:
        return np.isin(keys, sorted(ours))

    plain = {event.key: event for event in gather(matches, vectors)}
    for event in fusion.fuse(*wording((matches, vectors)), in_project=in_project):
        before, part = plain[event.key], event.parts[-1]

        assert event.score == sum(each.points for each in event.parts)
        assert (part.name, part.value) == ("project", float(event.key in ours))
        assert (event.plain, event.words, event.similarity) == (before.plain, before.words, before.similarity)
        assert [each.name for each in before.parts] == [each.name for each in event.parts[:-1]]
