"""What a record says of the people around it: paths of their folders, addresses, the name of the machine.

In: a sentence that was kept in a record, or an argument of it. Out: the same with those parts named instead of shown.
The system's own folders stay: they say which kernel file or device was meant, and nobody's name stands in them.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from functools import cache
from typing import Any

PATH, ADDRESS, HOST = "<path>", "<address>", "<host>"
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"<>(),;]+")
_POSIX = r"(?<![\w.<>~])~?/(?:[^\s/:;,'\"()<>]+/)*[^\s/:;,'\"()<>]+/?"
_WINDOWS = r"(?<!\w)(?:[A-Za-z]:[\\/]|\\\\)[^\s:;,'\"()<>]+"
_PATHS = re.compile(f"{_WINDOWS}|{_POSIX}")
_SYSTEM = ("/sys/", "/proc/", "/dev/", "/usr/", "/etc/", "/opt/")
_SHORTEST = 4  # letters of a machine's name: a shorter one is a word of many sentences
_NO_NAMES = frozenset({"localhost", "ubuntu", "debian", "linux", "windows"})


def scrubbed(text: str) -> str:
    """``text`` without paths of people's folders, addresses and this machine's name.

    >>> scrubbed("cannot write /home/anna/out.json: disk full (see /proc/meminfo)")
    'cannot write <path>: disk full (see /proc/meminfo)'
    >>> scrubbed("the store postgresql://anna:***@studio-db/cardfit cannot be used")
    'the store <address> cannot be used'
    """
    found = _PATHS.sub(_named, _ADDRESS.sub(ADDRESS, text))
    host = _host()
    return host.sub(HOST, found) if host else found


def scrubbed_args(args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a sentence, each text of them scrubbed; one that is a path is a path to its end, blanks too."""
    return {
        name: _argument(value) if isinstance(value, str) else value for name, value in args.items()
    }


def without(text: str, args: Mapping[str, Any]) -> str:
    """``text`` scrubbed, with the paths among its arguments taken out first: they may hold blanks."""
    for value in args.values():
        if isinstance(value, str) and _argument(value) == PATH:
            text = text.replace(value, PATH)
    return scrubbed(text)


def _argument(value: str) -> str:
    begin = _PATHS.match(value)
    return PATH if begin and _named(begin) == PATH and "\n" not in value else scrubbed(value)


def _named(found: re.Match[str]) -> str:
    return found.group() if found.group().startswith(_SYSTEM) else PATH


@cache
def _host() -> re.Pattern[str] | None:
    """This machine's name, where it is one that nothing else is called by."""
    name = socket.gethostname()
    if len(name) < _SHORTEST or name.lower() in _NO_NAMES:
        return None
    return re.compile(rf"(?<![\w-]){re.escape(name)}(?:\.[\w.-]*\w)?(?![\w-])", re.IGNORECASE)
