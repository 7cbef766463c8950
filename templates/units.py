"""Service files that run the background archiver with systemd or launchd."""

import plistlib
from collections.abc import Mapping, Sequence
from typing import Final

NAME = "palaver"
_SPECIAL: Final = frozenset("\"'\\$")
"""Characters that systemd accepts in arguments but not in the name of a program."""
_BY_SHELL: Final = ("/bin/sh", "-c", 'exec "$0" "$@"')


def systemd_unit(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a unit file for `systemctl --user`. See systemd.service(5) and systemd.exec(5)."""
    if _SPECIAL.intersection(command[0]):
        command = [*_BY_SHELL, *command]
    words = [_quoted(word).replace("$", "$$") for word in command]
    settings = "".join(f"Environment={_quoted(f'{name}={value}')}\n" for name, value in environment.items())
    return f"""[Unit]
Description=Palaver archives conversations with coding agents

[Service]
Type=exec
ExecStart={" ".join(words)}
{settings}Restart=on-failure
RestartSec=10
TimeoutStopSec=10
Nice=10
UMask=0077

[Install]
WantedBy=default.target
"""


def launchd_agent(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Return a property list for `launchctl`. See launchd.plist(5)."""
    agent = {
        "Label": NAME,
        "ProgramArguments": list(command),
        "EnvironmentVariables": dict(environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 10,
        "ProcessType": "Background",
        "Umask": 0o077,
    }
    return plistlib.dumps(agent, sort_keys=False).decode()


def _quoted(word: str) -> str:
    """Return a word with systemd quoting. Bytes that are not UTF-8 are kept."""
    data = word.encode("utf-8", "surrogateescape")
    return '"' + "".join(_escaped(byte) for byte in data) + '"'


def _escaped(byte: int) -> str:
    letter = chr(byte)
    if letter in {'"', "\\"}:
        return f"\\{letter}"
    if letter == "%":
        return "%%"
    return letter if letter.isprintable() and byte < 0x7F else f"\\x{byte:02x}"
