"""Sentences of the room `predict`."""

TEXTS: dict[str, str] = {}
