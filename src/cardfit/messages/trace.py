"""Sentences of the room `trace`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {}
