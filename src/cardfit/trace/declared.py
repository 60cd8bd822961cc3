"""What the constructor of a pipeline class declares: its parts, by name and by the classes that it annotates.

In: a class of diffusers, or one built like them. Out: `Part` values. A part is told apart by what its class is: a
module with weights, a scheduler, a tokenizer, a processor, or a plain value. Left out: how a part is made
(`trace.anyclass`).
"""

from __future__ import annotations

import inspect
import typing
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal

import torch

Role = Literal["module", "scheduler", "tokenizer", "processor", "guider", "plain"]

_NEEDED = ("transformer", "unet", "prior", "vae", "text_encoder")  # even where None is allowed
_WITHOUT = ("safety_checker", "watermarker")  # outside the work, and None is allowed
_WORDS: tuple[tuple[Role, tuple[str, ...]], ...] = (
    ("tokenizer", ("Tokenizer", "TokenizerFast", "TokenizerBase")),
    ("processor", ("Processor", "ProcessorMixin", "FeatureExtractor")),
    ("guider", ("Guidance",)),
)


@dataclass(frozen=True, slots=True)
class Part:
    """One argument of a pipeline's constructor: what may stand there, and whether it must."""

    name: str
    role: Role
    kinds: tuple[type, ...]
    default: Any  # inspect.Parameter.empty: none
    needed: bool


def parts_of(pipeline: type[Any]) -> tuple[Part, ...]:
    """The parts that the constructor of ``pipeline`` asks for, in its order."""
    hints = _hints(pipeline)
    found = []
    for name, each in inspect.signature(pipeline).parameters.items():
        if each.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            continue
        kinds = tuple(k for k in _flat(hints.get(name, each.annotation)) if isinstance(k, type))
        role = _role(name, kinds)
        empty = each.default is inspect.Parameter.empty
        needed = name in _NEEDED or (empty and name not in _WITHOUT)
        found.append(Part(name, role, kinds, each.default, needed))
    return tuple(found)


def _hints(pipeline: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(pipeline.__init__)
    except Exception:  # a name that only type checkers import
        return {}


@cache
def _alternatives(hint: Any) -> tuple[Any, ...]:
    arguments = typing.get_args(hint)
    return tuple(x for each in arguments for x in _alternatives(each)) if arguments else (hint,)


def _flat(hint: Any) -> tuple[Any, ...]:
    try:
        return tuple(each for each in _alternatives(hint) if each is not type(None))
    except TypeError:  # a hint with a list inside cannot be kept
        return ()


def _role(name: str, kinds: tuple[type, ...]) -> Role:
    if name == "safety_checker" and any("Cosmos" in kind.__name__ for kind in kinds):
        return "plain"  # of a package of its own, and not counted
    if any(issubclass(kind, torch.nn.Module) for kind in kinds) or name in _NEEDED:
        return "module"
    names = [kind.__name__ for kind in kinds]
    if any(hasattr(kind, "set_timesteps") or "Scheduler" in kind.__name__ for kind in kinds):
        return "scheduler"
    if not kinds and name.endswith("scheduler"):
        return "scheduler"
    for role, words in _WORDS:
        if any(each.endswith(words) for each in names):
            return role
    if "tokenizer" in name:
        return "tokenizer"
    if name.endswith(("processor", "feature_extractor")):
        return "processor"
    return "plain"
