"""Time zone of a process: UTC for `--utc`, the setting `timezone`, or else the zone of the system."""

from datetime import UTC

from ..core.conversation import use_time_zone
from ..core.errors import ConfigInvalid
from ..observe.archive import Archive


def use_utc() -> None:
    """Select UTC for this process."""
    use_time_zone(UTC)


def use_configured_zone() -> None:
    """Select the time zone of the settings for this process.

    Invalid settings are ignored here, because the command reports them.
    """
    try:
        use_time_zone(Archive.find().config.display_zone)
    except ConfigInvalid:
        use_time_zone(None)
