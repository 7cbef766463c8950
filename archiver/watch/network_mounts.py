"""Detection of file systems that send no events for changes by other machines."""

import os
import sys
from pathlib import Path
from typing import Final

_MOUNTS: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset(
    "9p afs beegfs ceph cifs fuse glusterfs gpfs lustre ncpfs nfs nfs4 prl_fs smb3 smbfs vboxsf virtiofs vmhgfs".split()
)
"""Types of file systems on which another machine may change files. With `fuse`, another program may do so."""


def is_network_mount(path: Path) -> bool:
    """Return whether files below a folder can change without an event.

    Only Linux reports the type of each file system. On other systems, the regular scan finds these changes.
    """
    if sys.platform != "linux":
        return False
    try:
        real, lines = os.fsencode(path.resolve()), _MOUNTS.read_bytes().splitlines()
    except (OSError, RuntimeError):
        return False
    kind, longest = "", -1
    for line in lines:
        mount, _, system = line.partition(b" - ")  # The number of fields before the dash varies (see proc(5)).
        fields = mount.split(b" ")
        if len(fields) < 5:
            continue
        point = fields[4].decode("unicode_escape").encode("latin-1").rstrip(b"/")  # Spaces are octal escapes.
        # If a folder has several mounts, the last mount counts.
        if (real + b"/").startswith(point + b"/") and len(point) >= longest:
            kind, longest = system.split(b" ")[0].decode("ascii", "replace"), len(point)
    return kind.partition(".")[0] in _NETWORK
