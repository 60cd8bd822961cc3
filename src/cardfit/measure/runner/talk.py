"""How the child speaks to its parent: JSON lines on what was its stdout, silence and death when nobody listens.

In: the process's own streams. Out: a `Line` to the parent. Whatever a library prints goes to stderr. A thread watches
stdin: when the parent is gone, so is this process, and with it the card's memory.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

from cardfit.measure.job import Event, EventName, Job


class Line:
    """The way to the parent."""

    def __init__(self, descriptor: int | None = None) -> None:
        """Takes stdout for itself and points it to stderr; ``descriptor`` is another way out, for tests."""
        if descriptor is None:
            sys.stdout.flush()
            descriptor = os.dup(1)
            os.dup2(2, 1)
        self._descriptor = descriptor
        self._lock = threading.Lock()

    def say(self, event: EventName, **data: Any) -> None:
        """Tell the parent; one line, written whole."""
        text = Event(event=event, at=time.monotonic(), data=data).model_dump_json() + "\n"
        with self._lock:
            left = memoryview(text.encode())
            while left:
                left = left[os.write(self._descriptor, left) :]


def read_job() -> Job:
    """The job on the first line of stdin."""
    return Job.model_validate_json(sys.stdin.buffer.readline())


def die_with_parent() -> None:
    """End this process at once when its stdin closes, which happens when the parent dies, however it dies."""

    def watch() -> None:
        while os.read(0, 4096):
            pass
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))

    threading.Thread(target=watch, daemon=True).start()
