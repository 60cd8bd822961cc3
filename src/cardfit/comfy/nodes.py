"""What is known of ComfyUI's node types: the data file `data/nodes.yaml` as checked values.

In: the data file. Out: `Known`, with a `NodeKind` by type name. A kind says which widget sits where, what an output
gives (by rules in the language of `cardfit.comfy.expressions`), which files a loader loads and how a sampler counts its
steps. A type that is not in the file is unknown and gives nothing.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from cardfit.comfy.expressions import parse

Attribute = Literal[
    "value",
    "width",
    "height",
    "frames",
    "batch",
    "fps",
    "steps",
    "start",
    "denoise",
    "cfg",
    "guidance",
]
Use = Literal[
    "checkpoint",
    "denoiser",
    "text_encoder",
    "vae",
    "lora",
    "clip_vision",
    "controlnet",
    "model_patch",
    "style_model",
    "audio_encoder",
    "upscale_model",
    "latent_upscale_model",
    "frame_interpolation",
    "other",
]
CONTROL_WORDS = frozenset({"fixed", "increment", "decrement", "randomize"})
"""What the hidden widget after a seed says; it is no input."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Output(_Frozen):
    """What one output gives: rules by attribute, else the same as the input ``like``."""

    like: str | None = None
    rules: dict[Attribute, str] = {}
    ask: tuple[Attribute, ...] = ()


class Load(_Frozen):
    """A file that a loader loads: which input names it and where ComfyUI looks for it."""

    file: str
    folder: str
    use: Use
    dtype: str | None = None


class Sampler(_Frozen):
    """How a sampler runs: rules for its steps and guidance, and the inputs that model and latent come in by."""

    steps: str
    cfg: str = "1"
    denoise: str = "1"
    start: str = "0"
    latent: str
    model: str


class Decode(_Frozen):
    """A decoder: the input that the latent comes in by, and the rules for its tiles where it has them."""

    latent: str
    tiled: str = "0"
    tile: str | None = None
    overlap: str | None = None
    temporal: str | None = None
    temporal_overlap: str | None = None


class Saves(_Frozen):
    """An end of the graph: what it writes."""

    from_: Annotated[str, Field(alias="from")]
    fps: str | None = None
    container: str | None = None
    codec: str | None = None


class NodeKind(_Frozen):
    """One node type."""

    widgets: tuple[str | dict[str, Any] | None, ...] = ()
    defaults: dict[str, int | float | bool | str] = {}
    out: dict[int, Output] = {}
    every: Output | None = None
    same: bool = False
    loads: tuple[Load, ...] = ()
    sampler: Sampler | None = None
    decode: Decode | None = None
    saves: Saves | None = None
    formula: str | None = None
    continues: tuple[str, ...] = ()
    encodes: Annotated[bool, Field(description="a picture becomes a latent here")] = False
    makes: Literal["audio", "3d"] | None = None
    marks: Annotated[
        str | None, Field(description="what it says of the task: edit, inpaint, source-video")
    ] = None

    @model_validator(mode="before")
    @classmethod
    def _short_forms(cls, value: Any) -> Any:
        """``out: samples`` and ``out: {2: {width: width}}`` as the long form."""
        if not isinstance(value, dict):
            return value
        value = dict(value)
        out = value.get("out")
        if isinstance(out, str):
            value["every"] = {"like": out}
            value["out"] = {}
        elif isinstance(out, dict):
            value["out"] = {slot: _output(each) for slot, each in out.items()}
        return value

    @model_validator(mode="after")
    def _rules_parse(self) -> NodeKind:
        for output in (*self.out.values(), *((self.every,) if self.every else ())):
            for rule in (*output.rules.values(), *((output.like,) if output.like else ())):
                parse(rule)
        return self

    def output(self, slot: int) -> Output | None:
        """What output ``slot`` gives, None where the data says nothing."""
        return self.out.get(slot, self.every)

    def named(self, values: list[Any]) -> dict[str, Any]:
        """``values`` by position as values by name. A hidden control word is left out, whether or not it is there."""
        found: dict[str, Any] = {}
        left = list(values)
        for widget in self.widgets:
            if isinstance(widget, str) and widget.startswith("*"):
                found[widget[1:]] = [each for each in left if each not in ("", None)]
                break
            if widget is None:
                if left and isinstance(left[0], str) and left[0] in CONTROL_WORDS:
                    left.pop(0)
                continue
            if not left:
                break
            if isinstance(widget, dict):  # the widgets that follow a choice
                chosen = widget.get(str(found.get(str(widget["by"]))), ())
                for name in chosen:
                    if left:
                        found[str(name)] = left.pop(0)
                continue
            found[widget] = left.pop(0)
        return found


def _output(value: Any) -> Any:
    """One output in short form: an input's name, or attributes beside ``like`` and ``ask``."""
    if isinstance(value, str):
        return {"like": value}
    rules = {name: str(each) for name, each in value.items() if name not in ("like", "ask")}
    return {"like": value.get("like"), "ask": value.get("ask", ()), "rules": rules}


class Known(_Frozen):
    """The data file: node types with their rules, and tables of sizes that some nodes choose from."""

    tables: dict[str, tuple[tuple[int, int], ...]]
    nodes: dict[str, NodeKind]
    same: tuple[str, ...]
    plain: tuple[str, ...]
    sources: tuple[str, ...]

    def kind(self, type_name: str) -> NodeKind | None:
        """The kind of ``type_name``, None for a type that the data does not know."""
        return self.nodes.get(type_name)

    def knows(self, type_name: str) -> bool:
        """Whether the type is known, be it only as one that says nothing of memory or time."""
        return type_name in self.nodes or type_name in self._plain

    @property
    def _plain(self) -> frozenset[str]:
        return _plain_set(self.plain)


@cache
def _plain_set(names: tuple[str, ...]) -> frozenset[str]:
    return frozenset(names)


@cache
def known() -> Known:
    """The shipped knowledge."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (files("cardfit.comfy") / "data" / "nodes.yaml").read_text(encoding="utf-8")
    fields = yaml.load(text, Loader=loader)
    for name in fields["same"]:
        fields["nodes"].setdefault(name, {"same": True})
    return Known.model_validate(fields)
