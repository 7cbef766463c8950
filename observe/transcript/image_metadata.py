"""Removal of metadata from images, such as the place and the names of files. What an image shows is not changed."""

from collections.abc import Iterator
from typing import Final

_PNG_CHUNKS: Final = frozenset({
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"sRGB", b"cHRM", b"sBIT", b"pHYs",
})  # fmt: skip
_WEBP_CHUNKS: Final = frozenset({b"VP8 ", b"VP8L", b"VP8X", b"ALPH", b"ANIM", b"ANMF"})
_SCAN: Final = 0xDA
_DROPPED_MARKERS: Final = frozenset({*range(0xE1, 0xEE), 0xEF, 0xFE})
"""Markers of JPEG segments for applications and comments. Those of JFIF and Adobe (E0, EE) change how it is shown."""


def without_metadata(media_type: str, data: bytes) -> bytes | None:
    """Return an image without metadata, or None if its structure is invalid or its format is not supported."""
    pieces = {"image/png": _png, "image/jpeg": _jpeg, "image/webp": _webp}.get(media_type)
    try:
        return b"".join(pieces(data)) if pieces else None
    except (IndexError, ValueError):
        return None


def _png(data: bytes) -> Iterator[bytes]:
    yield data[:8]
    at, kind = 8, b""
    while kind != b"IEND":
        length, kind = int.from_bytes(_exactly(data, at, 4), "big"), data[at + 4 : at + 8]
        chunk = _exactly(data, at, 12 + length)
        if kind in _PNG_CHUNKS:
            yield chunk
        at += len(chunk)


def _jpeg(data: bytes) -> Iterator[bytes]:
    yield data[:2]
    at = 2
    while True:
        if data[at] != 0xFF:
            raise ValueError("no marker")
        marker, length = data[at + 1], int.from_bytes(_exactly(data, at + 2, 2), "big")
        if marker == _SCAN:
            break
        segment = _exactly(data, at, 2 + length)
        if marker not in _DROPPED_MARKERS:
            yield segment
        at += len(segment)
    end = data.find(b"\xff\xd9", at)
    if end < 0:
        raise ValueError("no end")
    yield data[at : end + 2]


def _webp(data: bytes) -> Iterator[bytes]:
    body, at = list[bytes](), 12
    while at < len(data):
        length = int.from_bytes(_exactly(data, at + 4, 4), "little")
        chunk = _exactly(data, at, 8 + length + length % 2)
        if chunk[:4] == b"VP8X":  # Its flags announce the metadata: ICC (0x20), EXIF (0x08) and XMP (0x04).
            chunk = chunk[:8] + bytes([chunk[8] & ~0x2C]) + chunk[9:]
        if chunk[:4] in _WEBP_CHUNKS:
            body.append(chunk)
        at += len(chunk)
    content = b"WEBP" + b"".join(body)
    yield b"RIFF" + len(content).to_bytes(4, "little") + content


def _exactly(data: bytes, start: int, length: int) -> bytes:
    """Return this many bytes. Raises `ValueError` if the data ends before."""
    part = data[start : start + length]
    if len(part) < length:
        raise ValueError("cut short")
    return part
