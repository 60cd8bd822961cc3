"""Where a trace comes from: the atlas, else the cache, else a dry run.

The atlas speaks for the versions it was made with. Where torch and diffusers are installed in other versions the dry
run answers, because what is installed is what will run. Without them a request that lies outside the atlas is an
error that says what of it does, and which extra traces it.
"""

from __future__ import annotations

from contextvars import ContextVar
from importlib.metadata import PackageNotFoundError, version

from cardfit.errors import MissingExtra, Note
from cardfit.library.models import Model
from cardfit.request import ExactRequest, Settings
from cardfit.trace import atlas, cache
from cardfit.trace.atlas.compose import Gap
from cardfit.trace.cache import Progress
from cardfit.trace.lock import differing
from cardfit.trace.stream import Trace

EXTRA = ("torch", "diffusers", "transformers")
DRY_RUNS: ContextVar[bool] = ContextVar("dry_runs", default=True)
"""Whether a dry run may answer. A server says no: then the atlas alone does, whatever is installed."""


def installed() -> dict[str, str]:
    """What is installed of the packages that a dry run takes."""
    found: dict[str, str] = {}
    for name in EXTRA if DRY_RUNS.get() else ():
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def traced(
    model: Model, request: ExactRequest, settings: Settings, *, progress: Progress | None = None
) -> tuple[Trace, tuple[Note, ...]]:
    """The Trace of ``request`` and what should be said of where it comes from.

    Raises MissingExtra where only a dry run could tell and a package is missing, BadFile for a damaged atlas.
    """
    model, here = model.as_traced, installed()
    missing = [name for name in EXTRA if name not in here]
    found = atlas.find(model, request, settings) if _speaks(model, here) else Gap("versions")
    if isinstance(found, Trace):
        return found, ()
    if missing:
        raise MissingExtra("atlas-gap", model=model.id, field=found.field, package=missing[0])
    return cache.cached(model, request, settings, progress=progress)


def can_trace(model: Model, request: ExactRequest, settings: Settings) -> bool:
    """Whether `traced` would find a trace."""
    model, here = model.as_traced, installed()
    if all(name in here for name in EXTRA):
        return True
    return isinstance(atlas.find(model, request, settings), Trace)


def _speaks(model: Model, here: dict[str, str]) -> bool:
    """Whether the atlas was made with what is installed, as far as anything is."""
    made = atlas.versions_of(model)
    return not differing(here, made)
