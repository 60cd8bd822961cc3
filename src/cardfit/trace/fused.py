"""Attention and RMS norm by CUDA's fused kernels, decided before torch's CPU build takes them apart.

`Functions` catches the calls, `Fused` is the part of the recorder that answers them by the rules of `trace.attention`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch.overrides import TorchFunctionMode

from cardfit.errors import BadRequest
from cardfit.messages import say
from cardfit.trace import attention as sdpa
from cardfit.trace import kernels
from cardfit.trace.stream import Op

if TYPE_CHECKING:
    from cardfit.trace.frame import Frame

_META = torch.device("meta")


class Functions(TorchFunctionMode):
    """Attention and RMS norm are decided here, before torch's CPU build would take them apart."""

    def __init__(self, recorder: Fused) -> None:
        super().__init__()
        self.recorder = recorder

    def __torch_function__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        kwargs = kwargs or {}
        if func is F.scaled_dot_product_attention:
            return self.recorder.attention(*args, **kwargs)
        if func is torch.tensor:  # written down by the model's own code: keep the data
            return func(*args, **{**kwargs, "device": None})
        if func is F.rms_norm and self.recorder.fused_rms_norm:
            fused = self.recorder.rms_norm(*args, **kwargs)
            if fused is not None:
                return fused
        return func(*args, **kwargs)


class Fused:
    """What of a recorder answers for fused kernels."""

    attention_rule: str
    flash_on: dict[int, str]
    within_attention: bool
    more_without_flash_bytes: int
    fused_rms_norm: bool
    path: list[str]

    if TYPE_CHECKING:

        @property
        def frame(self) -> Frame:
            """The stream being written now."""

        def pause(self) -> AbstractContextManager[None]:
            """Our own tensor handling is not the pipeline's."""

        def _site(self, op: str) -> int: ...

        def _births(self, out: Any, op: str) -> int: ...

        def _moved(self, tensor: torch.Tensor) -> torch.Tensor: ...

    def attention(
        self,
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        attn_mask: torch.Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> torch.Tensor:
        """Attention ``[batch, heads, length, head_dim]`` by the rule of the kernel that torch picks, or that was asked.

        ``dropout_p`` and ``scale`` change no size. Raises BadRequest where flash was asked for and cannot run.
        """
        asked = sdpa.Asked(query, key, value, attn_mask, is_causal, enable_gqa)
        kernel = sdpa.kernel_for(asked, self.attention_rule)
        self._refuse_other_than_flash(asked, kernel)
        if kernel == "math":
            return self._unfused(asked)
        site = self._site(sdpa.SITES[kernel])
        before, beside = sdpa.scratch_bytes(asked, kernel)
        if before:
            self.frame.events.append((Op.WORKSPACE, 0, before, site))
        with self.pause():
            batch_heads, length = query.shape[:-2], query.shape[-2]
            shape = (*batch_heads[:-1], length, *batch_heads[-1:], value.shape[-1])
            out = torch.empty(shape, dtype=query.dtype, device=_META)
            if len(batch_heads):
                out = out.transpose(-3, -2)  # fused kernels write [batch, length, heads, head_dim]
        self._births(out, sdpa.SITES[kernel])
        if beside:
            self.frame.events.append((Op.WORKSPACE, 0, beside, site))
        if kernel == "flash":
            more = sdpa.more_without_flash_bytes(asked)
            self.more_without_flash_bytes = max(self.more_without_flash_bytes, more)
        nbytes = sum(kernels.tensor_bytes(t) for t in (query, key, value, out))
        flop = sdpa.flop(asked, kernel)
        self.frame.add_work("attention", kernels.dtype_class(query), flop, nbytes)
        return out

    def _unfused(self, asked: sdpa.Asked) -> torch.Tensor:
        """The unfused path, whose operations are recorded one by one under attention's name."""
        q, k, v = (self._moved(t) for t in (asked.q, asked.k, asked.v))
        on_card = sdpa.Asked(q, k, v, asked.mask, asked.causal, asked.grouped)
        before, self.within_attention = self.within_attention, True
        try:
            return sdpa.unfused(on_card)
        finally:
            self.within_attention = before

    def _refuse_other_than_flash(self, asked: sdpa.Asked, kernel: sdpa.Kernel) -> None:
        """Flash by name is set on the denoiser; the other components take what torch picks."""
        name = self.flash_on.get(self.frame.component)
        if name is None or kernel == "flash":
            return
        why = sdpa.why_not_flash(asked) or "flash-shape"
        found = {
            "dtype": str(asked.q.dtype).removeprefix("torch."),
            "head_dim": asked.q.shape[-1],
            "most": sdpa.FLASH_MAX_HEAD_DIM,
        }
        where = f"{name}.{self.path[-1]}" if self.path and self.path[-1] else name
        raise BadRequest(
            "attention-flash-refused", component=name, where=where, why=say(why, found)
        )

    def rms_norm(
        self,
        input: torch.Tensor,
        normalized_shape: Any,
        weight: torch.Tensor | None = None,
        eps: float | None = None,
    ) -> torch.Tensor | None:
        """CUDA's fused RMS norm: the output and one fp32 value per row; None where torch does not fuse it."""
        if weight is not None and weight.dtype != input.dtype:
            return None
        with self.pause():
            out = torch.empty(input.shape, dtype=input.dtype, device=_META)
        self._births(out, "rms_norm")
        rows = input.numel() // max(1, input.shape[-1])
        self.frame.events.append((Op.WORKSPACE, 0, 4 * rows, self._site("rms_norm")))
        self.frame.add_work(
            "elementwise", kernels.dtype_class(out), 0.0, 2 * kernels.tensor_bytes(out)
        )
        return out
