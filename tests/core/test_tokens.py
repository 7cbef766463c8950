"""Tests of core/tokens.py."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.core import tokens
from palaver.core.tokens import Memo, TokenCounts, UsageRecord, count, total_usage, usage_by_reply

from ..cases import for_each

# text, o200k_base count, count of Anthropic's published tokenizer
KNOWN = [
    ("The watcher missed a rename because the event arrived before the file was complete.", 15, 15),
    (
        """def parse_instant(text: str) -> Milliseconds | None:
    moment = datetime.fromisoformat(text)
    return round(moment.timestamp() * 1000)
""",
        34,
        37,
    ),
    ('{"path": "src/app/server.ts", "startLine": 120, "endLine": 184, "replace_all": false}', 29, 31),
    ("2026-03-14 09:26", 10, 9),
    ("/home/dev/projects/shop/src/components/CheckoutButton.test.tsx", 12, 20),
    ("getUserAccountBalanceByIdentifier", 6, 5),
    ("9f8e7d6c-5b4a-4938-a716-253443526170", 23, 25),
    ("obs-1042 2026-03-01 decision 0.85 Keep the cache in SQLite, not in memory", 25, 23),
    ("我们决定把缓存放到数据库里,因为重启之后数据不能丢失。", 19, 23),
    ("検索結果が空の場合のメッセージを追加する必要があります。", 16, 23),
    ("검색 색인이 손상되면 자동으로 다시 만듭니다.", 15, 24),
    ("Тест упал из-за неправильной обработки часового пояса.", 14, 26),
    ("- [x] write the failing test\n- [ ] make it pass\n\n| name | ratio |\n| --- | --- |\n| ours | 0.62 |\n", 34, 37),
]


@for_each("text, o200k, anthropic", KNOWN)
def test_estimate_is_close_to_the_larger_real_count(text: str, o200k: int, anthropic: int) -> None:
    """An estimate is at most 10 % below and 20 % above the larger real count."""
    real = max(o200k, anthropic)

    assert 0.9 * real <= count(text) <= 1.2 * real + 1


def test_total_estimate_is_slightly_too_high() -> None:
    """In total, estimates are too high by at most one seventh."""
    real = sum(max(o200k, anthropic) for _, o200k, anthropic in KNOWN)

    assert real <= sum(count(text) for text, _, _ in KNOWN) <= real * 8 / 7


def test_empty_text_has_no_tokens() -> None:
    """The empty text has no tokens."""
    assert count("") == 0


@given(st.text(max_size=200), st.text(max_size=200))
def test_costs_of_lines_add_up(first: str, second: str) -> None:
    """The token count of two lines is about the sum of their token counts."""
    assert abs(count(f"{first}\n{second}") - count(first) - count(second)) <= 3


SIGNS = st.text(st.sampled_from("aBcDE0123456789 \n\t\r\x1c\xa0\u2003\u3000.,;)_-\u00e9\u0663\u6211"), max_size=60)


@given(SIGNS)
def test_text_is_counted_word_by_word(text: str) -> None:
    """No pattern matches across spaces."""
    whole = sum(cost * len(pattern.findall(text)) for pattern, cost in tokens._WORDS)  # pyright: ignore[reportPrivateUsage]

    assert sum(map(tokens._cost_of_word, text.split())) == whole  # pyright: ignore[reportPrivateUsage]


# A cache computes each value once and has a maximum size.


def test_value_is_computed_once() -> None:
    """A second request returns the cached value, and `get` computes no value."""
    made = list[str]()

    def make(name: str) -> str:
        made.append(name)
        return name.upper()

    memo = Memo[str, str](most=2)

    assert memo.get("a") is None
    assert [memo.get_or_make("a", make), memo.get_or_make("a", make), memo.get("a")] == ["A", "A", "A"]
    assert made == ["a"]


@given(st.lists(st.integers(0, 9)), st.integers(1, 5))
def test_cache_is_correct_and_bounded(requests: list[int], most: int) -> None:
    """For any requests, each returned value is correct, and the cache never exceeds its maximum size."""
    memo = Memo[int, int](most)
    for number in requests:
        assert memo.get_or_make(number, lambda number: number * number) == number * number
        assert 0 < len(memo) <= most


def test_failed_computation_is_not_cached() -> None:
    """A failed computation raises its error and does not change the cached values."""
    memo = Memo[int, float](most=1)
    assert memo.get_or_make(4, lambda number: 1 / number) == 0.25

    with pytest.raises(ZeroDivisionError):
        memo.get_or_make(0, lambda number: 1 / number)
    assert memo == {4: 0.25}


# Tests of the count of tokens.


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
