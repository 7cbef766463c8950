"""File system for Linux that loses unsynced data when its power is cut. It uses the kernel's FUSE device directly.

lossy_disk.py FOLDER mounts itself at FOLDER and executes commands from standard input, one JSON list per line:

["cut", N]              fail all requests after N more changes, and report when this happens
["restore", SEED]       mount again with the content of the disk: all synced data, and, depending on SEED,
                        some unsynced writes and the first unsynced changes of names

The protocol is defined in the kernel's `include/uapi/linux/fuse.h`.
"""

import ctypes
import errno
import json
import os
import random
import select
import stat
import struct
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

_IN: Final = struct.Struct("<IIQQIIIHH")
_OUT: Final = struct.Struct("<IiQ")
_ATTRIBUTES: Final = struct.Struct("<QQQQQQIIIIIIIIII")
_VALID: Final = struct.Struct("<QQQQII")
_SET: Final = struct.Struct("<IIQQQQQQIIIIIIII")
_BUFFER: Final = 1 << 20
_WRITE: Final = 1 << 17
_ROOT: Final = 1
_FOREVER: Final = 3600
"""Seconds for which the kernel may cache a name. Only the kernel changes names."""
_KEEP_CACHE: Final = 2
_SIZE, _MODE, _MTIME, _MTIME_NOW = 8, 1, 32, 256
_DETACH: Final = 2
_NO_REPLACE: Final = 1

Names: TypeAlias = tuple[tuple[int, str, int | None], ...]
"""Atomic changes of folders: folder, name, and the new node, if any."""


class Refused(Exception):
    """Request that is answered with an error number."""


@dataclass(slots=True)
class Node:
    """File or folder, as processes see it and as the disk stores it."""

    mode: int
    data: bytearray = field(default_factory=bytearray)
    names: dict[str, int] = field(default_factory=dict[str, int])
    mtime: int = field(default_factory=time.time_ns)
    disk: bytes = b""
    disk_names: dict[str, int] = field(default_factory=dict[str, int])
    unsynced: list[tuple[int, bytes | None]] = field(default_factory=list[tuple[int, "bytes | None"]])
    """Writes since the last sync: offset and data, or the size after a truncation."""

    def write(self, at: int, data: bytes) -> None:
        _put(self.data, at, data)
        self.unsynced.append((at, data))
        self.mtime = time.time_ns()

    def resize(self, size: int) -> None:
        _put(self.data, size, None)
        self.unsynced.append((size, None))
        self.mtime = time.time_ns()

    def sync(self) -> None:
        self.disk = bytes(self.data)
        self.unsynced.clear()

    def forget(self, survives: Callable[[], bool]) -> None:
        """Restore the synced content, with some of the unsynced writes."""
        self.data = bytearray(self.disk)
        for at, data in self.unsynced:
            if survives():
                _put(self.data, at, data)
        self.sync()


def _put(target: bytearray, at: int, data: bytes | None) -> None:
    if data is None:
        del target[at:]
        target.extend(bytes(at - len(target)))
    else:
        target.extend(bytes(max(0, at - len(target))))
        target[at : at + len(data)] = data


class Disk:
    """Nodes, and unsynced changes of names in their order."""

    def __init__(self) -> None:
        self.nodes = {_ROOT: Node(stat.S_IFDIR | 0o700)}
        self._unsynced: list[Names] = []

    def make(self, folder: int, name: str, mode: int) -> int:
        if name in self.nodes[folder].names:
            raise Refused(errno.EEXIST)
        number = max(self.nodes) + 1
        self.nodes[number] = Node(mode)
        self.change((folder, name, number))
        return number

    def change(self, *names: tuple[int, str, int | None]) -> None:
        self._unsynced.append(names)
        for folder, name, number in names:
            _name(self.nodes[folder].names, name, number)
            self.nodes[folder].mtime = time.time_ns()

    def sync(self, number: int) -> None:
        """Make the bytes of a file or the names in a folder durable, with all changes of the same atomic operation."""
        self.nodes[number].sync()
        safe = [names for names in self._unsynced if any(folder == number for folder, _, _ in names)]
        self._unsynced = [names for names in self._unsynced if names not in safe]
        self._keep(safe)

    def forget(self, random_: random.Random) -> None:
        """Restore the state after the power loss."""
        lucky = random_.choice((0.0, 0.0, 0.5, 0.9))
        self._keep(self._unsynced[: int(len(self._unsynced) * lucky * random_.random())])
        self._unsynced.clear()
        for node in self.nodes.values():
            node.forget(lambda: random_.random() < lucky)
            node.names = dict(node.disk_names)

    def _keep(self, safe: list[Names]) -> None:
        for folder, name, number in (each for names in safe for each in names):
            _name(self.nodes[folder].disk_names, name, number)

    def links(self, number: int) -> int:
        return sum(each == number for node in self.nodes.values() for each in node.names.values())


def _name(names: dict[str, int], name: str, number: int | None) -> None:
    if number is None:
        names.pop(name, None)
    else:
        names[name] = number


class LossyFileSystem:
    """File system that answers the kernel's requests."""

    def __init__(self, folder: str) -> None:
        self._folder, self._disk = folder, Disk()
        self._left: int | None = None
        self._answers: dict[int, Callable[[int, bytes], bytes]] = {
            1: self._look_up, 3: self._attributes, 4: self._set, 8: self._make_node, 9: self._make_folder,
            10: self._remove, 11: self._remove_folder, 12: self._rename, 13: self._link, 14: self._open, 15: self._read,
            16: self._write, 17: self._room, 18: _nothing, 20: self._sync, 26: self._begin, 27: self._open,
            28: self._list, 29: _nothing, 30: self._sync, 35: self._create, 45: self._rename_so,
        }  # fmt: skip
        self._changes = {4, 8, 9, 10, 11, 12, 13, 16, 20, 30, 35, 45}
        self._mount()

    def _mount(self) -> None:
        self.kernel = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        options = f"fd={self.kernel},rootmode=40000,user_id={os.getuid()},group_id={os.getgid()}"
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mount(b"lossy", self._folder.encode(), b"fuse", 0, options.encode()):
            raise OSError(ctypes.get_errno(), f"cannot mount: {os.strerror(ctypes.get_errno())}")

    def unmount(self) -> None:
        ctypes.CDLL(None).umount2(self._folder.encode(), _DETACH)
        os.close(self.kernel)

    def cut(self, after: int) -> None:
        """Fail all requests after a number of changes."""
        self._left = after

    def restore(self, seed: int) -> None:
        """Start again with the content of the disk after a power loss."""
        self.unmount()
        self._disk.forget(random.Random(seed))
        self._left = None
        self._mount()

    def answer(self) -> bool:
        """Answer one request and return whether the power was cut."""
        request = os.read(self.kernel, _BUFFER)
        _, opcode, unique, node, *_ = _IN.unpack_from(request)
        was_cut = self._left == 0
        if opcode in {2, 36, 42}:  # FORGET, INTERRUPT and BATCH_FORGET get no reply
            return False
        error, answer = 0, b""
        try:
            answer = self._answer(opcode, node, request[_IN.size :])
        except Refused as refused:
            error = refused.args[0]
        except KeyError:
            error = errno.ENOENT
        os.write(self.kernel, _OUT.pack(_OUT.size + len(answer), -error, unique) + answer)
        return self._left == 0 and not was_cut

    def _answer(self, opcode: int, node: int, body: bytes) -> bytes:
        if opcode not in self._answers:
            raise Refused(errno.ENOSYS)
        if self._left == 0 and opcode not in {18, 26, 29}:
            raise Refused(errno.EIO)
        if self._left and opcode in self._changes:
            self._left -= 1
        return self._answers[opcode](node, body)

    def _begin(self, _node: int, body: bytes) -> bytes:
        major, _minor, ahead, _flags = struct.unpack_from("<IIII", body)
        return struct.pack("<IIIIHHII32x", major, 31, ahead, 1 << 5, 12, 9, _WRITE, 1)

    def _shown(self, number: int) -> bytes:
        node = self._disk.nodes[number]
        seconds, rest = divmod(node.mtime, 10**9)
        size, links = len(node.data), self._disk.links(number) or 1
        return _ATTRIBUTES.pack(
            number, size, -(-size // 512), seconds, seconds, seconds, rest, rest, rest, node.mode, links,
            os.getuid(), os.getgid(), 0, 4096, 0,
        )  # fmt: skip

    def _entry(self, number: int) -> bytes:
        return _VALID.pack(number, 0, _FOREVER, 0, 0, 0) + self._shown(number)

    def _look_up(self, node: int, body: bytes) -> bytes:
        return self._entry(self._disk.nodes[node].names[_text(body)])

    def _attributes(self, node: int, _body: bytes) -> bytes:
        return struct.pack("<QII", 0, 0, 0) + self._shown(node)

    def _set(self, node: int, body: bytes) -> bytes:
        found, values = self._disk.nodes[node], _SET.unpack_from(body)
        valid, size, mtime, mtime_rest, mode = values[0], values[3], values[6], values[9], values[11]
        if valid & _SIZE:
            found.resize(size)
        if valid & _MODE:
            found.mode = mode
        if valid & _MTIME:
            found.mtime = time.time_ns() if valid & _MTIME_NOW else mtime * 10**9 + mtime_rest
        return self._attributes(node, b"")

    def _make_node(self, node: int, body: bytes) -> bytes:
        (mode,) = struct.unpack_from("<I", body)
        return self._entry(self._disk.make(node, _text(body[16:]), mode))

    def _make_folder(self, node: int, body: bytes) -> bytes:
        (mode,) = struct.unpack_from("<I", body)
        return self._entry(self._disk.make(node, _text(body[8:]), stat.S_IFDIR | mode))

    def _create(self, node: int, body: bytes) -> bytes:
        _flags, mode = struct.unpack_from("<II", body)
        return self._entry(self._disk.make(node, _text(body[16:]), mode)) + self._open(0, b"")

    def _remove(self, node: int, body: bytes) -> bytes:
        name = _text(body)
        _ = self._disk.nodes[node].names[name]
        self._disk.change((node, name, None))
        return b""

    def _remove_folder(self, node: int, body: bytes) -> bytes:
        if self._disk.nodes[self._disk.nodes[node].names[_text(body)]].names:
            raise Refused(errno.ENOTEMPTY)
        return self._remove(node, body)

    def _rename(self, node: int, body: bytes) -> bytes:
        (folder,) = struct.unpack_from("<Q", body)
        return self._move(node, folder, body[8:])

    def _rename_so(self, node: int, body: bytes) -> bytes:
        folder, flags = struct.unpack_from("<QI", body)
        if flags & ~_NO_REPLACE:
            raise Refused(errno.EINVAL)
        if flags and body[16:].split(b"\0")[1].decode() in self._disk.nodes[folder].names:
            raise Refused(errno.EEXIST)
        return self._move(node, folder, body[16:])

    def _move(self, node: int, folder: int, body: bytes) -> bytes:
        old, new = (name.decode() for name in body.split(b"\0")[:2])
        number = self._disk.nodes[node].names[old]
        self._disk.change((node, old, None), (folder, new, number))
        return b""

    def _link(self, node: int, body: bytes) -> bytes:
        (number,) = struct.unpack_from("<Q", body)
        name = _text(body[8:])
        if name in self._disk.nodes[node].names:
            raise Refused(errno.EEXIST)
        self._disk.change((node, name, number))
        return self._entry(number)

    def _open(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<QII", 0, _KEEP_CACHE, 0)

    def _read(self, node: int, body: bytes) -> bytes:
        _, at, size = struct.unpack_from("<QQI", body)
        return bytes(self._disk.nodes[node].data[at : at + size])

    def _write(self, node: int, body: bytes) -> bytes:
        _, at, size = struct.unpack_from("<QQI", body)
        self._disk.nodes[node].write(at, body[40 : 40 + size])
        return struct.pack("<II", size, 0)

    def _room(self, _node: int, _body: bytes) -> bytes:
        return struct.pack("<QQQQQIIII24x", 1 << 20, 1 << 19, 1 << 19, 1 << 20, 1 << 19, 4096, 255, 4096, 0)

    def _sync(self, node: int, _body: bytes) -> bytes:
        self._disk.sync(node)
        return b""

    def _list(self, node: int, body: bytes) -> bytes:
        _, at, size = struct.unpack_from("<QQI", body)
        answer = b""
        for place, (name, number) in enumerate([*self._disk.nodes[node].names.items()][at:], at + 1):
            encoded = name.encode()
            entry = struct.pack("<QQII", number, place, len(encoded), self._disk.nodes[number].mode >> 12) + encoded
            entry += bytes(-len(entry) % 8)
            if len(answer) + len(entry) > size:
                break
            answer += entry
        return answer


def _nothing(_node: int, _body: bytes) -> bytes:
    return b""


def _text(body: bytes) -> str:
    return body.partition(b"\0")[0].decode()


def serve(folder: str) -> None:
    """Serve requests until standard input ends."""
    disk = LossyFileSystem(folder)
    asked: dict[str, Callable[[int], None]] = {"cut": disk.cut, "restore": disk.restore}
    print(json.dumps("mounted"), flush=True)
    try:
        while True:
            ready, _, _ = select.select([disk.kernel, sys.stdin], [], [])
            if disk.kernel in ready and disk.answer():
                print(json.dumps("cut"), flush=True)
            if sys.stdin in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                what, number = json.loads(line)
                asked[what](number)
                if what == "restore":
                    print(json.dumps("restored"), flush=True)
    finally:
        disk.unmount()


if __name__ == "__main__":
    serve(sys.argv[1])
