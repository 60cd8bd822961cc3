"""The facts about pipeline classes and parts that their own code does not say, read from a data file.

In: `data/classes.yaml`. Out: a `Facts` value: which configs fit together where the classes' defaults do not, which
arguments a call wants beside sizes and a prompt, and which classes are left out and why. Each fact carries its reason.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

Skip = Literal["audio", "3d", "base", "text-out", "protein", "package", "modular", "embedding"]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class PartFacts(_Frozen):
    """What a part is built with where its class's own defaults make no module, or none that fits."""

    kind: str | None = Field(default=None, description="class, where the declared one is general")
    config_kind: str | None = None
    entry: str | None = Field(default=None, description="library entry, and its component")
    config: dict[str, Any] = {}
    thinned: dict[str, Any] = Field(default={}, description="config too, where layers are left out")
    why: str = ""


class PipelineFacts(_Frozen):
    """What one pipeline class takes beside what its constructor and its call say."""

    parts: dict[str, PartFacts] = {}
    entry: str | None = Field(default=None, description="library entry that its parts come from")
    dtype: str = Field(default="bfloat16", description="of every part but those kept in fp32")
    constructor: dict[str, Any] = {}
    call: dict[str, Any] = {}
    uncalled: tuple[str, ...] = Field(default=(), description="parts that its call leaves alone")
    why: str


class Facts(_Frozen):
    """The whole file."""

    parts: dict[str, PartFacts]
    pipelines: dict[str, PipelineFacts]
    skipped: dict[str, Skip]
    uncalled: dict[str, str] = Field(
        description="parts that do their work without being called, and how"
    )


@cache
def facts() -> Facts:
    """The shipped facts."""
    text = (files("cardfit.trace") / "data" / "classes.yaml").read_text(encoding="utf-8")
    return Facts.model_validate(yaml.safe_load(text))


def of_pipeline(name: str) -> PipelineFacts:
    """The facts about pipeline class ``name``; empty ones where nothing needs saying."""
    return facts().pipelines.get(name) or PipelineFacts(why="")
