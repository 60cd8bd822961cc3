"""Sentences of the room `library`."""

from cardfit.messages.mark import N_

TEXTS: dict[str, str] = {
    "unknown-model": N_("{asked}: no such model. {suggestion}List them: cardfit models"),
    "did-you-mean": N_("did you mean {names}? "),
}
