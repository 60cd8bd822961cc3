"""Sentences of the room `plan`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
}
