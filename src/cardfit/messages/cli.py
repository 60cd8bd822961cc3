"""Sentences of the room `cli`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
}
