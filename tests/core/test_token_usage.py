"""Tests of the count of tokens."""

from hypothesis import given
from hypothesis import strategies as st

from palaver.core.tokens import TokenCounts, UsageRecord, total_usage, usage_by_reply

number = st.integers(0, 10**6)
counts = st.builds(TokenCounts, number, number, number, number, number)
name = st.sampled_from(["", "a", "b", "c"])
records = st.lists(st.builds(UsageRecord, name, name, counts, st.integers(1, 9), name), max_size=20)


@given(records, st.randoms())
def test_the_order_of_records_changes_nothing(found: list[UsageRecord], random: object) -> None:
    shuffled = list(found)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    assert total_usage(shuffled) == total_usage(found)


@given(records, records)
def test_a_repeated_record_counts_once(found: list[UsageRecord], other: list[UsageRecord]) -> None:
    assert total_usage([*found, *other, *found]) == total_usage([*found, *other])


@given(records)
def test_each_reply_has_the_largest_count_of_each_type(found: list[UsageRecord]) -> None:
    replies = {(reply.message, reply.request): reply.counts for reply in usage_by_reply(found)}

    assert replies.keys() == {(record.message, record.request) for record in found}
    for reply, total in replies.items():
        own = [record.counts.by_type for record in found if (record.message, record.request) == reply]
        assert total.by_type == tuple(map(max, zip(*own, strict=True)))


@given(records, records)
def test_replies_of_other_messages_add_up(found: list[UsageRecord], other: list[UsageRecord]) -> None:
    apart = [record._replace(message=f"other {record.message}") for record in other]

    assert total_usage([*found, *apart]) == total_usage(found) + total_usage(other)


def test_the_total_contains_each_type_once() -> None:
    used = TokenCounts(input=1, output=20, cache_read=300, cache_write_5m=4_000, cache_write_1h=50_000)

    assert used.total == 54_321
    assert used.cache_write == 54_000
