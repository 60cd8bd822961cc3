"""Sentences of the room `cards`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "unknown-card": N_("{asked}: no such card. {suggestion}List them: cardfit cards"),
}
