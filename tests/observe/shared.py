"""Session with a secret and the path of a home folder in every place, for tests of sharing."""

import base64
import struct
import zlib
from typing import Any

from ..archiver.formats.claude_code.claude_lines import assistant, result, text, tool, user

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
NAME = "zebulon"
FOLDER = f"/home/{NAME}"
PLANTED = f"{SECRET} {FOLDER}/x file://{FOLDER}/y C:\\Users\\{NAME}\\z \\/Users\\/{NAME}\\/w -home-{NAME}-v"


def png(note: str = "", *, colour: int = 0) -> bytes:
    """Return a small image with a text in its metadata."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 0, 0, 0, 0)),
        (b"tEXt", b"Comment\0" + note.encode()),
        (b"IDAT", zlib.compress((b"\0" + bytes([colour]) * 8) * 8)),
        (b"IEND", b""),
    ]
    rows = [
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(rows)


def image(data: bytes) -> dict[str, Any]:
    """Return a block with an image."""
    source = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(data).decode()}
    return {"type": "image", "source": source}


def planted() -> list[dict[str, Any]]:
    """Return the records of a session. Each has the secret and the folder, as a part of a longer text."""
    path = f"{FOLDER}/shop/{SECRET}/door.py"
    change: dict[str, Any] = {
        "filePath": path, "oldString": f"a {PLANTED}", "newString": f"b {PLANTED}", "structuredPatch": [],
    }  # fmt: skip
    records = [
        user([{"type": "text", "text": f"Paint the door with {PLANTED}"}, image(png(PLANTED))]),
        assistant(text(f"I paint. {PLANTED}\n\n```sh\nls {FOLDER}\n```"), id="m1"),
        assistant(tool("Bash", {"command": f"ls {PLANTED}", "description": PLANTED}, "t1"), id="m2"),
        result(f"Error: {PLANTED}\nand {PLANTED}", None, "t1", is_error=True),
        assistant(tool("Edit", {"file_path": path, "old_string": change["oldString"]}, "t2"), id="m3"),
        result(f"updated {path}", change, "t2"),
        assistant(tool("Read", {"file_path": path}, "t3"), id="m4"),
        result([{"type": "text", "text": PLANTED}, image(png(PLANTED, colour=9))], None, "t3"),
        user("Let's use oil paint instead of water."),
        assistant(text(f"Fixed: the paint dries in {path}.\n\n## Next steps\n- Paint {PLANTED} on Monday."), id="m5"),
    ]
    place = {"cwd": f"{FOLDER}/{SECRET}/shop", "gitBranch": f"fix/{SECRET}{FOLDER}"}
    titled = {"type": "custom-title", "customTitle": f"Door {PLANTED}"}
    return [*({**record, **place} for record in records), titled]
