"""What a few models need to run on meta: each patch names what it stands in for, and holds during a dry run only."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import torch
import torch.nn.functional as F

from cardfit.trace.recorder import Recorder


@contextmanager
def patches(recorder: Recorder) -> Iterator[None]:
    """All patches, for the length of a dry run."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(torch.autocast, "__init__", _autocast(torch.autocast)))
        for where in ("transformers.transformer_cosmos", "controlnets.controlnet_cosmos"):
            _cosmos(stack, where)
        _flex(stack)
        _hidream(stack, recorder)
        _hunyuan15(stack)
        _safety_checker(stack)
        yield


def _found(path: str) -> Any:
    """A module of diffusers, or None where the installed release does not have it yet."""
    try:
        return importlib.import_module(f"diffusers.models.{path}")
    except ImportError:
        return None


def _autocast(kind: Any) -> Any:
    """``autocast("meta")`` does not exist (Mochi asks for it); meta stands for the card here."""

    original = kind.__init__

    @functools.wraps(original)
    def init(self: Any, device_type: str, *args: Any, **kwargs: Any) -> None:
        original(self, "cpu" if device_type == "meta" else device_type, *args, **kwargs)

    return init


def _flex(stack: ExitStack) -> None:
    """FlexAttention refuses meta; compiled, as it is meant to be run, it is one fused kernel over the same sizes."""
    module = getattr(_found("attention_dispatch"), "flex_attention", None)
    if module is None:
        return

    def fused(
        query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, **kwargs: Any
    ) -> torch.Tensor:
        scale, gqa = kwargs.get("scale"), bool(kwargs.get("enable_gqa"))
        return F.scaled_dot_product_attention(query, key, value, scale=scale, enable_gqa=gqa)

    stack.enter_context(patch.object(module, "flex_attention", fused))


def _cosmos(stack: ExitStack, where: str) -> None:
    """Cosmos resizes its padding mask with torchvision; nearest resizing is torch's own."""
    module = _found(where)
    if module is None:
        return

    def resize(mask: torch.Tensor, size: list[int], interpolation: Any = None) -> torch.Tensor:
        return F.interpolate(mask, size=size, mode="nearest")

    if not hasattr(module, "transforms"):
        stand_in = SimpleNamespace(
            functional=SimpleNamespace(resize=resize),
            InterpolationMode=SimpleNamespace(NEAREST="nearest"),
        )
        stack.enter_context(patch.object(module, "transforms", stand_in, create=True))


def _hidream(stack: ExitStack, recorder: Recorder) -> None:
    """HiDream counts how many tokens chose each expert; on meta the recorder answers with equal shares."""
    module = _found("transformers.transformer_hidream_image")
    if module is None:
        return

    kind: Any = module.MOEFeedForwardSwiGLU
    original = kind.moe_infer

    @functools.wraps(original)
    def moe_infer(self: Any, *args: Any, **kwargs: Any) -> Any:
        recorder.experts = len(self.experts)
        return original(self, *args, **kwargs)

    stack.enter_context(patch.object(kind, "moe_infer", moe_infer))


def _hunyuan15(stack: ExitStack) -> None:
    """HunyuanVideo-1.5's VAE fills its causal mask row by row in Python: one tensor, thousands of writes that allocate
    nothing. Here the same tensor is made without the writes."""
    module = _found("autoencoders.autoencoder_kl_hunyuanvideo15")
    if module is None:
        return

    def mask(
        n_frame: int, n_hw: int, dtype: Any, device: Any, batch_size: int | None = None
    ) -> torch.Tensor:
        length = n_frame * n_hw
        out = torch.full((length, length), float("-inf"), dtype=dtype, device=device)
        return out if batch_size is None else out.unsqueeze(0).expand(batch_size, -1, -1)

    for kind in vars(module).values():
        if isinstance(kind, type) and "prepare_causal_attention_mask" in vars(kind):
            stack.enter_context(
                patch.object(kind, "prepare_causal_attention_mask", staticmethod(mask))
            )


def _safety_checker(stack: ExitStack) -> None:
    """Stable Diffusion's checker reads its scores on the host: here no picture is like any concept."""
    module: Any = sys.modules.get("diffusers.pipelines.stable_diffusion.safety_checker")
    if module is None:  # no such component was built
        return
    original = module.cosine_distance

    @functools.wraps(original)
    def distance(image_embeds: torch.Tensor, text_embeds: torch.Tensor) -> torch.Tensor:
        found = original(image_embeds, text_embeds)
        return torch.full(found.shape, -1.0)

    stack.enter_context(patch.object(module, "cosine_distance", distance))
