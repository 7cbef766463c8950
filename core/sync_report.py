"""Values of a synchronisation with other devices: what was sent and received, and what each device still waits for."""

from msgspec import Struct, field


class DeviceStatus(Struct, frozen=True):
    """State of another device.

    Attributes:
        id: First characters of the hash of its key.
        behind: Number of its segments that this device has not read yet, because they have not arrived.
        unread: True if it has not read the last segment of this device.
        unread_deletions: True if one of the unread segments deletes content of this device's or its own transcripts.
        problem: Reason why its files were refused, or an empty string.
    """

    id: str
    name: str
    behind: int = 0
    unread: bool = False
    unread_deletions: bool = False
    problem: str = ""


class SyncReport(Struct):
    """Result of a synchronisation.

    Attributes:
        folder: The shared folder.
        device: Name of this device.
        sent_copies: Number of raw copies and result files with new bytes.
        sent_bytes: Bytes of the new segments.
        deletions: Number of deletions of other devices that were carried out, undone or erased.
        devices: The other devices.
    """

    folder: str
    device: str
    sent_copies: int = 0
    sent_memories: int = 0
    sent_deletions: int = 0
    sent_bytes: int = 0
    received_copies: int = 0
    received_memories: int = 0
    deletions: int = 0
    devices: list[DeviceStatus] = field(default_factory=list[DeviceStatus])

    @property
    def has_sent(self) -> bool:
        """True if anything was sent."""
        return bool(self.sent_copies or self.sent_memories or self.sent_deletions)

    @property
    def has_received(self) -> bool:
        """True if anything was received."""
        return bool(self.received_copies or self.received_memories or self.deletions)
