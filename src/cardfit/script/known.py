"""What is known of diffusers' names: the data files `data/calls.yaml` and `data/signatures.json` as checked values.

In: the data files. Out: `Known`. A call that is not in them says nothing; the reading lists it where it is made on a
pipeline or one of its components.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from cardfit.request import Dtype, Quantization, Task
from cardfit.request.models import Attention

Plain = bool | int | float | str | None


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Take(_Frozen):
    """A setting that an argument gives: by name or place, mapped where ``map`` has its value."""

    arg: str
    place: int = 99
    default: Plain = None
    map: dict[str, Plain] = {}


class Effect(_Frozen):
    """What a call on a pipeline or component says.

    ``sets`` are settings with their values. ``of`` says whose: the pipeline's, the component's, or that of the VAE.
    ``not_modelled`` says that nothing here follows it.
    """

    sets: dict[str, Plain | Take] = {}
    does: Annotated[
        Literal[
            "adapters",
            "attention",
            "cast",
            "compile",
            "environ",
            "fuse",
            "group",
            "guider",
            "ignore",
            "lora",
            "part",
            "quantize",
            "scheduler",
            "sdp",
            "tiling",
            "to",
            "unload",
        ]
        | None,
        Field(description="what is more than settings: a rule of `cardfit.script.ledger`"),
    ] = None
    not_modelled: bool = False


class SchemeRule(_Frozen):
    """A quantization config: its scheme, by what its arguments say."""

    scheme: Quantization | None = None
    by: dict[str, dict[str, Quantization]] = {}
    places: tuple[str, ...] = ()


class Known(_Frozen):
    """The data files."""

    same: Annotated[
        frozenset[str], Field(description="methods that give back what they are called on")
    ]
    through: Annotated[
        frozenset[str], Field(description="functions that give back their first argument")
    ]
    pictures: Annotated[tuple[str, ...], Field(description="calls that load a picture or a video")]
    results: Annotated[
        frozenset[str], Field(description="parts of an output that are its pictures")
    ]
    runners: Annotated[
        frozenset[str], Field(description="functions that call their first argument")
    ]
    values: Annotated[dict[str, Any], Field(description="names with a value")]
    assumed: Annotated[dict[str, Any], Field(description="calls taken as so")]
    facts: Annotated[
        dict[str, str], Field(description="attribute of a pipeline -> fact of its VAE")
    ]
    kin: Annotated[dict[str, str], Field(description="repository -> entry with the same shape")]
    helpers: Annotated[frozenset[str], Field(description="pipelines whose call makes no output")]
    packages: tuple[str, ...]
    dtypes: dict[str, Dtype]
    casts: dict[str, Dtype]
    attention: dict[str, Attention]
    effects: dict[str, Effect]
    schemes: dict[str, SchemeRule]
    by_name: Annotated[dict[str, Quantization], Field(description="pattern in a file's name")]
    call: Annotated[dict[str, str], Field(description="argument of a call -> field of a request")]
    inputs: Annotated[dict[str, str], Field(description="argument of a call -> kind of input")]
    quiet: Annotated[
        frozenset[str], Field(description="arguments that change neither memory nor time")
    ]
    quiet_loads: frozenset[str]
    tasks: Annotated[
        dict[str, tuple[Task, ...]], Field(description="word in a class name -> tasks")
    ]
    sized_by_input: Annotated[tuple[str, ...], Field(description="words in class names")]
    twice: Annotated[
        frozenset[str], Field(description="schedulers that call the model twice a step")
    ]
    sources: tuple[str, ...]

    @property
    def deciding(self) -> list[str]:
        """Calls that a plan depends on: a branch that makes one is asked for."""
        quiet = ("ignore", "to", "part", "environ")
        return [name for name, effect in self.effects.items() if effect.does not in quiet]


@cache
def known() -> Known:
    """The shipped knowledge."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = (files("cardfit.script") / "data" / "calls.yaml").read_text(encoding="utf-8")
    return Known.model_validate(yaml.load(text, Loader=loader))


@cache
def signatures() -> dict[str, dict[str, Any]]:
    """Pipeline class -> the arguments of its call that a request is made of, with their defaults."""
    text = (files("cardfit.script") / "data" / "signatures.json").read_text(encoding="utf-8")
    found: dict[str, dict[str, Any]] = json.loads(text)["pipelines"]
    return found
