"""Mounts: which file systems tell nobody what others write to them."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_SILENT: Final = frozenset(
    "9p afs beegfs ceph cifs glusterfs gpfs lustre ncpfs nfs nfs4 prl_fs smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
"""Kinds of file systems whose changes may be made on another machine, of which this kernel hears nothing.

Those of the kind `fuse` belong to them: what lies behind one is anybody's guess.
"""


def is_silent(path: Path) -> bool:
    """Whether changes below a folder can happen without an event, judged by the kind of file system it lies on.

    Only Linux says of which kind that is. Elsewhere events are trusted, and the regular scan finds what they miss.
    """
    kind = _kind(path)
    return kind in _SILENT or kind == "fuse" or kind.startswith("fuse.")


def _kind(path: Path) -> str:
    if sys.platform != "linux":
        return ""
    try:
        real, lines = os.fsencode(path.resolve()), _MOUNTS.read_bytes().splitlines()
    except (OSError, RuntimeError):
        return ""
    # Of mounts on the same folder the last one listed is the one that is seen.
    around = [(len(point), number, kind) for number, (point, kind) in enumerate(_mounts(lines)) if _holds(point, real)]
    return max(around)[2] if around else ""


def _mounts(lines: list[bytes]) -> Iterator[tuple[bytes, str]]:
    """Mount points and kinds; see proc(5) for the fields, of which those before the dash vary in number."""
    for line in lines:
        mount, _, system = line.partition(b" - ")
        fields, kinds = mount.split(b" "), system.split(b" ")
        if len(fields) > 4:
            # Blanks in names are written in octal.
            point = fields[4].decode("unicode_escape").encode("latin-1")
            yield point, kinds[0].decode("ascii", "replace")


def _holds(point: bytes, path: bytes) -> bool:
    return path == point or path.startswith(point.rstrip(b"/") + b"/")
