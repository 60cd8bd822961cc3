"""What makes two records the same: a hash of what was measured, and which of two states of one run is further on.

In: a `Record`. Out: its content hash, its standing, its short form. Sentences, prompts, files beside the record and the
way it took are not part of the hash: they differ by language and by store, and the measurement is the same.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from cardfit.records.models import Record

HASH_LENGTH = 32  # of a SHA-256 in hex: 128 bits
_SAID: dict[str, Any] = {
    "repetitions": {"__all__": {"silent"}},
    "outcome": {"log", "why"},
    "notes": True,
}
_BESIDE: dict[str, Any] = {
    "version": True,
    "inputs": {"prompt", "negative_prompt"},
    "latents": True,
    "outputs": True,
    "origin": True,
}
_LONG: dict[str, Any] = {
    **_SAID,
    "inputs": {"prompt", "negative_prompt"},
    "repetitions": {
        "__all__": {
            "silent": True,
            "calls": True,
            "step_seconds": True,
            "stages": {"__all__": {"figures"}},
        }
    },
}


def content_hash(record: Record) -> str:
    """The same for every copy of one measurement, wherever it lies.

    Fields at their defaults are left out, so that a field that a later cardfit adds changes no hash.
    """
    text = record.model_dump_json(
        by_alias=True, exclude_defaults=True, exclude={**_SAID, **_BESIDE}
    )
    text = json.dumps(json.loads(text), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:HASH_LENGTH]


def standing(record: Record) -> tuple[bool, int, bool]:
    """How far a record has come: of two states of one run the higher one holds more. A run grows while it is saved."""
    return record.finished, len(record.repetitions), record.quality is not None


def further(one: Record, other: Record) -> bool:
    """Whether ``one`` is further on than ``other``, a state of the same run; every store decides alike."""
    return (*standing(one), content_hash(one)) > (*standing(other), content_hash(other))


def same_run(one: Record, other: Record) -> bool:
    """Whether two records of one id are states of one run, rather than two runs of which one took the other's id."""
    return _run(one) == _run(other)


def _run(record: Record) -> tuple[Any, ...]:
    return (
        record.created,
        record.model,
        record.request,
        record.settings,
        record.device,
        record.machine.card,
    )


def short(record: Record) -> str:
    """The record's JSON without single calls, steps and sentences: all that lists, choices and factors read."""
    named = json.dumps({"schema": record.schema_, "version": record.version})
    body = record.model_dump_json(
        by_alias=True, exclude_defaults=True, exclude={**_LONG, "version": True}
    )
    return f"{named[:-1]}, {body[1:]}"
