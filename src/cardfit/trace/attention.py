"""Attention: which kernel torch picks on a card, what each keeps and its scratch, for memory and FLOPs alike.

In: query, key, value ``[batch, heads, length, head_dim]`` and a mask, all without data. Out: the kernel's name, its
scratch bytes, and for the unfused path the operations themselves. The rules are those of torch 2.13 on CUDA with
gradients off (`sdp_utils.cpp`, `attention.cu`). Left out: cuDNN's kernel, which Hopper may prefer, flash attention's
partial results for very short queries, and packages that bring kernels of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import torch

Kernel = Literal["flash", "efficient", "math"]

FLASH_MAX_HEAD_DIM = 256  # FlashAttention-2 as built into torch
FLASH_ALIGNMENT = 8  # elements; q, k and v with another head_dim are padded
# above it the memory-efficient kernel keeps an fp32 accumulator of the output's shape, in half precision
EFFICIENT_MAX_VALUE_DIM = 128
EFFICIENT_ALIGNMENT = {2: 8, 4: 4}  # item size -> elements that a head_dim must be a multiple of
BIAS_ALIGNMENT = 8  # elements; an attention bias whose rows are no multiple is padded
SITES: dict[Kernel, str] = {
    "flash": "scaled_dot_product_flash_attention",
    "efficient": "scaled_dot_product_efficient_attention",
    "math": "scaled_dot_product_attention_math",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """One call of ``scaled_dot_product_attention``."""

    q: torch.Tensor
    k: torch.Tensor
    v: torch.Tensor
    mask: torch.Tensor | None = None
    causal: bool = False
    grouped: bool = False  # fewer heads of k and v than of q, and the kernel may repeat them

    @property
    def rows(self) -> int:
        """Queries: batch x heads x length."""
        return prod(self.q.shape[:-1])

    @property
    def repeats(self) -> bool:
        """Whether heads of k and v serve several of q."""
        return self.grouped and self.q.shape[-3] != self.k.shape[-3]


def why_not_flash(asked: Asked) -> str | None:
    """The message code of what keeps FlashAttention from a call; None where nothing does."""
    q, k, v = asked.q, asked.k, asked.v
    if q.element_size() != 2:
        return "flash-needs-half"
    if asked.mask is not None:
        return "flash-takes-no-mask"
    if q.shape[-1] > FLASH_MAX_HEAD_DIM:
        return "flash-head-dim"
    if {q.dim(), k.dim(), v.dim()} != {4} or not q.shape[-1] == k.shape[-1] == v.shape[-1]:
        return "flash-shape"
    return None


def takes_efficient(asked: Asked) -> bool:
    """Whether the memory-efficient kernel takes a call: four dimensions, aligned head_dim, no grouped heads."""
    q, k, v = asked.q, asked.k, asked.v
    step = EFFICIENT_ALIGNMENT.get(q.element_size())
    if step is None or {q.dim(), k.dim(), v.dim()} != {4} or asked.repeats:
        return False
    return q.shape[-1] == k.shape[-1] and not (q.shape[-1] % step or v.shape[-1] % step)


def kernel_for(asked: Asked, attention: str = "sdpa") -> Kernel:
    """The kernel that runs: ``math`` as asked, ``efficient`` never flash, otherwise the first that takes the call."""
    if attention == "math":
        return "math"
    if attention != "efficient" and why_not_flash(asked) is None:
        return "flash"
    return "efficient" if takes_efficient(asked) else "math"


def flop(asked: Asked, kernel: Kernel) -> float:
    """Two matrix products over the full score matrix; a fused kernel skips the half that a causal mask hides."""
    full = 2.0 * asked.rows * asked.k.shape[-2] * (asked.q.shape[-1] + asked.v.shape[-1])
    return full / 2 if asked.causal and kernel != "math" else full


def padded_bias_bytes(shape: Sequence[int], strides: Sequence[int], item_bytes: int) -> int:
    """Bytes of the padded copy that the memory-efficient kernel makes of a bias; 0 where its rows are aligned."""
    if strides[-1] == 1 and not any(stride % BIAS_ALIGNMENT for stride in strides[:-1]):
        return 0
    row = shape[-1] + BIAS_ALIGNMENT - shape[-1] % BIAS_ALIGNMENT
    return prod(shape[:-1]) * row * item_bytes


def bias_bytes(mask: torch.Tensor | None, item_bytes: int) -> tuple[int, int]:
    """What a mask costs before the memory-efficient kernel runs, and while it runs.

    A boolean mask becomes a bias in the query's dtype; an unaligned bias is copied into a padded one.
    """
    if mask is None:
        return 0, 0
    made, strides = 0, mask.stride()
    if mask.dtype == torch.bool:
        made = mask.numel() * item_bytes
        strides = torch.empty(mask.shape, device="meta").stride()
    padded = padded_bias_bytes(mask.shape, strides, item_bytes)
    return made + padded, padded or made


def accumulator_bytes(asked: Asked) -> int:
    """The memory-efficient kernel's fp32 accumulator; 0 where it keeps the output in registers."""
    wide = asked.v.shape[-1] > EFFICIENT_MAX_VALUE_DIM and asked.q.element_size() == 2
    return 4 * asked.rows * asked.v.shape[-1] if wide else 0


def scratch_bytes(asked: Asked, kernel: Kernel) -> tuple[int, int]:
    """Bytes that a fused kernel takes before its output exists, and beside it.

    Flash keeps one fp32 log-sum-exp per query, and padded q, k and v where head_dim is no multiple of 8; the
    memory-efficient kernel keeps none without gradients, but the mask's bias and its accumulator.
    """
    item = asked.q.element_size()
    if kernel == "flash":
        dim = asked.q.shape[-1]
        padded = -(-dim // FLASH_ALIGNMENT) * FLASH_ALIGNMENT
        copies = 0
        if padded != dim:
            copies = sum(t.numel() // dim * padded * item for t in (asked.q, asked.k, asked.v))
        return copies, copies + 4 * asked.rows
    before, beside = bias_bytes(asked.mask, item)
    return before, beside + accumulator_bytes(asked)


def more_without_flash_bytes(asked: Asked) -> int:
    """What a call that takes flash costs more on a card before Ampere, which has only the memory-efficient kernel."""
    return max(0, accumulator_bytes(asked) - 4 * asked.rows)


def unfused(asked: Asked) -> torch.Tensor:
    """``_scaled_dot_product_attention_math`` operation by operation: births and deaths are torch's own.

    For half types q, k and v are copied to fp32; q and k are scaled in copies of their own; scores, softmax and the
    search for rows that are masked whole take 4 + 4 + 1 bytes per score.
    """
    dtype, half = asked.q.dtype, asked.q.element_size() == 2
    q, k, v = (t.float() if half else t for t in (asked.q, asked.k, asked.v))
    query = q * 1.0
    mask = asked.mask
    if mask is not None and mask.dtype == torch.bool:
        mask = torch.where(mask, *_ends(mask, dtype))
    if asked.causal:
        square = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        mask = torch.where(square, *_ends(square, query.dtype))
        del square
    if asked.repeats:
        k = k.repeat_interleave(q.shape[-3] // k.shape[-3], -3)
        v = v.repeat_interleave(q.shape[-3] // v.shape[-3], -3)
    scores = torch.matmul(query, k.transpose(-2, -1) * 1.0)
    if mask is not None:
        scores += mask
    shares = _safe_softmax(scores)
    del scores
    kept = shares.to(dtype)  # torch returns it beside the output; nobody reads it
    out = torch.matmul(shares, v).to(dtype)
    del kept
    return out


def _ends(like: torch.Tensor, dtype: torch.dtype) -> tuple[torch.Tensor, torch.Tensor]:
    return (
        torch.zeros((), dtype=dtype, device=like.device),
        torch.full((), float("-inf"), dtype=dtype, device=like.device),
    )


def _safe_softmax(scores: torch.Tensor) -> torch.Tensor:
    """torch's ``_safe_softmax``: rows that are masked whole become zero, in place."""
    shares = torch.softmax(scores, -1)
    masked = torch.isneginf(scores)
    masked.all(-1, keepdim=True)
    return shares
