"""Every name, number and path of a sentence must occur in the source."""

import pytest

from palaver.observe.llm.grounding import SourceText

from ...cases import for_each

SOURCE = SourceText(
    [
        "The loader in src/app/cache.py reads config.toml; run `make test --force` with Python 3.11.2.",
        "缓存在 3 个文件中：loader.goを修正しました。",
        "We moved 1,054 sessions from redis to PostgreSQL on 2026-11-23: getUserName() failed with E0425 after 12 ms.",
    ]
)

GROUNDED = (
    "Sessions moved from Redis to PostgreSQL.",
    "Redis's loader is in app/cache.py.",
    "It was cache.py, and `getUserName` failed with e0425.",
    "1054 sessions moved on 2026-11-23 within 12ms.",
    "Python 3.11 is used with --force.",
    "Nothing here is a name, e.g. slow and/or broken; Everything is plain after a semicolon.",
    "Cache Loader Reads The Configuration Before Start",
    "Der Speicher wurde bei jedem Start geleert und ist nicht mehr kalt.",
    "Validation is part of the loader.",
    "Everything is plain.",
    "Users can run it.",
    "Use the loader now.",
    "Redis is the store.",
    "缓存共有3个文件",
    "キャッシュはloader.goの3件です。",
    "Redis를 PostgreSQL로 옮겼다",
)
INVENTED = (
    "Kafka is the queue.",
    "Oracle was empty after each start.",
    "Vercel now runs the loader.",
    "The cache is cold. Kubernetes was down.",
    "缓存共有4个文件",
    "キャッシュはstore.goの3件です。",
    "Kafka를 PostgreSQL로 옮겼다",
    "Sessions moved from Redis to MySQL.",
    "The loader is in src/app/store.py.",
    "It reads settings.toml.",
    "1,055 sessions moved.",
    "Python 3.1 is used.",
    "It failed with E0426.",
    "Run it with --verbose.",
    "The variable cache_dir is wrong.",
    "The `warehouse` is wrong.",
    "All of it is JSON.",
    "Der Speicher wurde geleert und ist in cache_dir.",
)


@for_each("sentence", GROUNDED)
def test_names_of_the_source_are_found(sentence: str) -> None:
    """Names are found without case, plural endings, separators of thousands and units."""
    assert SOURCE.contains_names_of(sentence)


@for_each("sentence", INVENTED)
def test_invented_names_are_detected(sentence: str) -> None:
    """A product, path, file, number, version, option or identifier that the source lacks is detected."""
    assert not SOURCE.contains_names_of(sentence)


def test_shared_words() -> None:
    """A sentence shares words with a source if at least half of its longer words occur there."""
    assert SOURCE.shares_words_with("The loader reads everything")
    assert not SOURCE.shares_words_with("Nobody ever reads everything")
    said = SourceText(["コミットの前に必ずテストを実行してください"])
    assert said.shares_words_with("コミットの前にテストを実行")
    assert not said.shares_words_with("変数名は英語で書く")


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("重试次数从三次改成十二次", "重试次数从3次改成12次"),
        ("タスクは１２３件です", "タスクは123件"),
        ("修正日: 2026-02-03", "2026年2月3日に修正"),
        ("一万件的数据", "10000件的数据"),
        ("处理了 10,000 条", "处理了1万条"),
        ("二〇二六年に三千五百行", "2026年に3500行"),
        ("約1.5万行", "約15000行"),
        ("第１２章（ＡＰＩ）", "API の第12章"),
    ],
)
def test_numbers_in_chinese_and_japanese(source: str, sentence: str) -> None:
    """A number may be written in Chinese characters or full-width digits in the source, and with leading zeros."""
    assert SourceText([source]).contains_names_of(sentence)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("重试次数从三次改成十二次", "重试次数从3次改成13次"),
        ("处理了 10,000 条", "处理了2万条"),
        ("设定是默认的", "有3个设定"),
        ("修正日: 2026-02-03", "2026年2月4日に修正"),
    ],
)
def test_other_numbers_in_chinese_and_japanese(source: str, sentence: str) -> None:
    """A number with another value is detected, in whatever characters it is written."""
    assert not SourceText([source]).contains_names_of(sentence)
