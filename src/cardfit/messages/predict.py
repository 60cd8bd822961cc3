"""Sentences of the room `predict`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {}
