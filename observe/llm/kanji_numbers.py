"""Numbers in Chinese characters, as Chinese and Japanese write them: 三, 十二, 二〇二六, 1万, 3千5百."""

import re
from collections.abc import Iterator
from typing import Final

_DIGITS: Final = {char: value for value, char in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_TENS: Final = {"十": 10, "百": 100, "千": 1_000}
_LARGE: Final = {"万": 10_000, "萬": 10_000, "億": 10**8, "亿": 10**8}
_CHARACTERS: Final = "".join((*_DIGITS, *_TENS, *_LARGE))
_NUMERAL: Final = re.compile(rf"(?:\d+(?:\.\d+)?)?[{_CHARACTERS}](?:[{_CHARACTERS}]|\d)*")
_PART: Final = re.compile(rf"\d+(?:\.\d+)?|[{_CHARACTERS}]")
_ROUND: Final = re.compile(rf"(\d+(?:\.\d+)?)([{''.join((*_TENS, *_LARGE))}]+)(?![{_CHARACTERS}\d])")


def kanji_numbers(text: str) -> Iterator[str]:
    """Yield the values of the numerals in a text, in digits. Words with a numeral, such as `一般`, give a value too."""
    for numeral in _NUMERAL.findall(text):
        yield _value(numeral)


def with_digits(text: str) -> str:
    """Return a text in which numerals that begin with digits are written in digits: `1.5万` becomes `15000`."""
    return _ROUND.sub(lambda numeral: _value(numeral.group()), text)


def _value(numeral: str) -> str:
    """Return the value of a numeral in digits. A sequence such as `二〇二六` is read digit by digit."""
    parts = _PART.findall(numeral)
    if len(parts) > 1 and all(part in _DIGITS for part in parts):
        return "".join(str(_DIGITS[part]) for part in parts)
    total = section = number = 0.0
    for part in parts:
        if part in _LARGE:
            total += (section + number or 1) * _LARGE[part]
            section = number = 0.0
        elif part in _TENS:
            section += (number or 1) * _TENS[part]
            number = 0.0
        else:
            number = _DIGITS[part] if part in _DIGITS else float(part)
    value = total + section + number
    return str(int(value)) if value.is_integer() else str(value)
