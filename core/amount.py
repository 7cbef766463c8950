"""Amounts: numbers and what they count, as a person writes them."""


def many(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun, as in `1 entry` and `2,689 entries`; the plural has an s where none is given."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def grouped(number: int) -> str:
    """A number alone, its thousands set apart."""
    return f"{number:,}"


def size(count: int) -> str:
    """Bytes in a unit of which there are not too many, as in `12 bytes`, `40 kB`, `0.4 MB` and `1.5 GB`."""
    if count >= 1e9:
        return f"{count / 1e9:.1f} GB"
    if count >= 1e5:
        return f"{count / 1e6:.1f} MB"
    return f"{count / 1e3:.0f} kB" if count >= 1e3 else many(count, "byte")
