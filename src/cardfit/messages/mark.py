"""The marker that Babel's extractor looks for."""


def N_(text: str) -> str:
    """Mark ``text`` for extraction; it is translated when it is said."""
    return text
