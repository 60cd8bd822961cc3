"""A dry run of a pipeline object that its author built on meta, in the author's own process.

In: a diffusers pipeline whose weights are on the meta device, and the arguments of its call. Out: a Trace, as of a
library model: its calls, births and deaths. What is asked (sizes, steps, frames) is read from the arguments and from
what comes out. The object is left as it was, but for dtypes that its own code changes. Left out: hooks that move
weights, which would look for a card.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch

from cardfit.errors import BadRequest
from cardfit.request import ExactRequest, Settings, Task
from cardfit.trace.cache import Progress
from cardfit.trace.dryrun import DryRun, _quiet
from cardfit.trace.stream import Trace

_METHODS = ("forward", "encode", "decode")
_CHANNELS = (1, 3, 4)
_CPU = torch.device("cpu")


def trace_pipeline(
    pipeline: Any, call: Mapping[str, Any], *, progress: Progress | None = None
) -> Trace:
    """The Trace of ``pipeline(**call)``. Raises BadRequest for an object that cannot be dry-run, DryRunFailed."""
    _quiet()
    return OwnRun(pipeline, call, progress).run()


class OwnRun(DryRun):
    """One dry run of somebody's own object."""

    def __init__(self, pipeline: Any, call: Mapping[str, Any], progress: Progress | None) -> None:
        kind = type(pipeline)
        parts = getattr(pipeline, "components", None)
        if not isinstance(parts, dict) or not callable(pipeline):
            raise BadRequest("trace-not-a-pipeline", found=kind.__name__)
        self.pipeline, self.arguments = pipeline, dict(call)
        names = inspect.signature(kind.__call__).parameters
        unknown = [name for name in call if name not in names and not _takes_any(names)]
        if unknown:
            raise BadRequest("trace-no-argument", kind=kind.__name__, asked=", ".join(unknown))
        if "output_type" in names:  # as library models are run: pictures are the host's business
            self.arguments.setdefault("output_type", "pt")
        asked = {name: each.default for name, each in names.items()} | dict(call)
        self.asked = {name: x for name, x in asked.items() if x is not inspect.Parameter.empty}
        model: Any = SimpleNamespace(id=kind.__name__)
        super().__init__(model, self._request(None), Settings(), progress)
        for name, part in parts.items():
            if isinstance(part, torch.nn.Module):
                _check(name, part)
                self._adopt(name, part)
        if not self.modules:
            raise BadRequest("trace-not-a-pipeline", found=kind.__name__)

    def run(self) -> Trace:
        """Call it, fold the timeline, put everything back."""
        kind, result = type(self.pipeline), []
        self.progress("dry-run", None)
        scheduler = getattr(self.pipeline, "scheduler", None)
        with self._held():
            self._call(
                lambda: result.append(_sizes(self.pipeline(**self.arguments))),
                None if scheduler is None else type(scheduler),
            )
        self.request = self._request(result[0], ran=True)
        sequence = tuple((getattr(kind, "model_cpu_offload_seq", None) or "").split("->"))
        excluded = getattr(kind, "_exclude_from_cpu_offload", ())
        return self._trace(
            kind.__name__, sequence, tuple(name for name in excluded if name in self.modules)
        )

    @contextmanager
    def _held(self) -> Iterator[None]:
        """The object as the dry run needs it: on no device of its own, silent, and unwrapped afterwards."""
        before = [
            (module, {name: vars(module)[name] for name in _METHODS if name in vars(module)})
            for part in self.modules.values()
            for module in part.modules()
        ]
        kind = type(self.pipeline)
        with ExitStack() as stack:
            for name in ("_execution_device", "device"):
                if isinstance(getattr(kind, name, None), property):
                    here = property(lambda _self: _CPU)
                    stack.enter_context(patch.object(kind, name, here))
            bar = {"_progress_bar_config": {"disable": True}}
            stack.enter_context(patch.dict(vars(self.pipeline), bar))
            try:
                yield
            finally:
                for module, own in before:
                    for name in _METHODS:
                        vars(module).pop(name, None)
                    vars(module).update(own)

    def _request(
        self, made: tuple[int, int, int, int] | None, *, ran: bool = False
    ) -> ExactRequest:
        """What was asked, from the arguments and, once it ran, from what came out (batch, frames, height, width)."""
        asked = self.asked
        given = {
            name: _whole(asked.get(name)) or 0
            for name in ("num_images_per_prompt", "num_frames", "height", "width")
        }
        batch, frames, height, width = made or tuple(given.values())
        steps = len(getattr(self, "step_ends", ())) or _whole(asked.get("num_inference_steps"))
        guidance = asked.get("guidance_scale")
        fields: dict[str, Any] = {
            "model": type(self.pipeline).__name__,
            "task": self._task(frames),
            "width": width,
            "height": height,
            "num_frames": frames or 1,
            "batch": batch or 1,
            "num_inference_steps": steps or 1,
            "guidance_scale": float(guidance) if isinstance(guidance, (int, float)) else 0.0,
            "prompt_tokens": max(1, len(str(asked.get("prompt") or "").split())),
        }
        if not ran:  # sizes may come out of the run alone
            return ExactRequest.model_construct(**fields)
        if min(height, width) < 1:
            raise BadRequest("trace-no-size", kind=fields["model"])
        return ExactRequest(**fields)

    def _task(self, frames: int) -> Task:
        given = {name for name in ("image", "video", "mask_image") if _is_there(self.asked, name)}
        if frames > 1:
            return (
                "video-to-video"
                if "video" in given
                else "image-to-video"
                if "image" in given
                else "text-to-video"
            )
        return (
            "inpainting"
            if "mask_image" in given
            else "image-to-image"
            if "image" in given
            else "text-to-image"
        )


def _takes_any(names: Mapping[str, inspect.Parameter]) -> bool:
    return any(each.kind is inspect.Parameter.VAR_KEYWORD for each in names.values())


def _is_there(asked: Mapping[str, Any], name: str) -> bool:
    return asked.get(name) is not None


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _check(name: str, module: torch.nn.Module) -> None:
    """Raise BadRequest where weights are not on meta, or hooks would move them."""
    for part in module.modules():
        if hasattr(part, "_hf_hook"):
            raise BadRequest("trace-own-hooks", component=name)
    for parameter in module.parameters():
        if parameter.device.type != "meta":
            raise BadRequest("trace-not-on-meta", component=name, device=str(parameter.device))


def _sizes(result: Any) -> tuple[int, int, int, int] | None:
    """Batch, frames, height and width of what a pipeline returned; None where that is no picture."""
    for name in ("images", "frames", "sample", "prediction", "rgb"):
        if getattr(result, name, None) is not None:
            result = getattr(result, name)
            break
    else:
        if isinstance(result, tuple) and result:
            result = result[0]
    if isinstance(result, (list, tuple)) and result:
        inner = _sizes(result[0])
        if inner is None:
            return None
        batch, frames, height, width = inner
        return (len(result), batch * frames, height, width)
    if hasattr(result, "shape"):
        return _shape(result.shape)
    if hasattr(result, "size") and isinstance(result.size, tuple):  # a picture of PIL
        return (1, 1, result.size[1], result.size[0])
    return None


def _shape(shape: Any) -> tuple[int, int, int, int] | None:
    """Sizes from a tensor's or an array's shape; channels are where 1, 3 or 4 stands at a usual place."""
    sides = [int(n) for n in shape]
    if len(sides) == 3:
        sides = [1, *sides]
    if len(sides) == 4:
        sides = [sides[0], 1, *sides[1:]]
    if len(sides) != 5:
        return None
    batch, frames, *rest = sides
    if rest[0] in _CHANNELS:
        return (batch, frames, rest[1], rest[2])
    if rest[2] in _CHANNELS:
        return (batch, frames, rest[0], rest[1])
    if frames in _CHANNELS:  # channels before frames, as decoders make them
        return (batch, rest[0], rest[1], rest[2])
    return None
