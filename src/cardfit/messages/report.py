"""Sentences of the room `report`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
}
