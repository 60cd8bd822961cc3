"""Small facts about operations and their arguments that the recorder decides by."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

from cardfit.trace.standins import LARGE


def flat(args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[torch.Tensor]:
    """The tensors among an operation's arguments: bare or in one list."""
    found = []
    for arg in (*args, *kwargs.values()):
        if isinstance(arg, torch.Tensor):
            found.append(arg)
        elif isinstance(arg, (list, tuple)):
            found.extend(item for item in arg if isinstance(item, torch.Tensor))
    return found


def lists(value: Any, depth: int = 3) -> list[list[Any]]:
    """The lists among a call's arguments, in walking order."""
    if depth == 0:
        return []
    found: list[list[Any]] = [value] if isinstance(value, list) else []
    items = (
        value.values()
        if isinstance(value, dict)
        else value
        if isinstance(value, (list, tuple))
        else ()
    )
    for item in items:
        found.extend(lists(item, depth - 1))
    return found


def grows(name: str, args: tuple[Any, ...]) -> bool:
    """Whether a small tensor is about to be repeated into a large one (an attention mask over all pairs)."""
    return name == "repeat" and args[0].numel() * prod(args[1]) > LARGE


def mask_to_places(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Indexing with a mask whose contents are known, as the places it selects: the result's length is the real one."""
    places: list[Any] = []
    for index in args[1]:
        if (
            isinstance(index, torch.Tensor)
            and index.dtype == torch.bool
            and index.device.type == "cpu"
        ):
            places.extend(index.nonzero(as_tuple=True))
        else:
            places.append(index)
    return (args[0], places, *args[2:])


def fixed_answer(tensor: torch.Tensor) -> bool | int | float:
    """What a forced read of a value on meta answers: True, 1 or 1.0."""
    if tensor.dtype == torch.bool:
        return True
    return 1.0 if tensor.is_floating_point() else 1
