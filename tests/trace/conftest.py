"""What several tests of the dry run share: short dry runs of library models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from cardfit.library.add_ons import with_add_ons
from cardfit.library.load import load
from cardfit.library.rules import resolve
from cardfit.request import Lora, Request, Settings
from cardfit.trace.stream import Trace


@cache
def _traced(model: str, asked: str, settings: str) -> Trace:
    from cardfit.trace.dryrun import dry_run

    entry = load(model)
    exact, _ = resolve(entry, Request.model_validate_json(asked))
    return dry_run(with_add_ons(entry, exact), exact, Settings.model_validate_json(settings))


@pytest.fixture(scope="session")
def traced() -> Callable[..., Trace]:
    """A dry run of a library model at a small size, made once per request and settings."""

    def run(model: str, *, loras: tuple[Lora, ...] = (), **fields: Any) -> Trace:
        knobs = {name: fields.pop(name) for name in list(fields) if name in Settings.model_fields}
        request = Request(model=model, loras=loras, **fields)
        return _traced(model, request.model_dump_json(), Settings(**knobs).model_dump_json())

    return run
