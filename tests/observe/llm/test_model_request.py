"""The reply is found in the text of a model, even if other text surrounds it."""

from palaver.observe.llm.provider import ReplyModel, parse_reply


class _Reply(ReplyModel):
    verdict: str


def test_numbers_with_too_many_digits_are_skipped() -> None:
    """A JSON object with a number that Python does not convert is skipped like any other text."""
    number = '{"level": ' + "9" * 5000 + "}"

    assert parse_reply(f'{number}\n{{"verdict": "nothing"}}', _Reply, "") == _Reply(verdict="nothing")
    assert parse_reply(f'{{"verdict": "nothing"}}\n{number}', _Reply, "") == _Reply(verdict="nothing")
