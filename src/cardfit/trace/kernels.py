"""What a kernel costs: FLOPs, and the scratch memory it takes beside its operands.

One explicit rule per family for both memory and FLOPs, since a CPU build of torch picks other kernels than CUDA does.
Left out: algorithms that cuDNN picks by benchmarking, and kernels of other vendors.
"""

from __future__ import annotations

from math import prod
from typing import Any

import torch

MATMULS = {"mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "_scaled_mm", "_int_mm"}
CONVOLUTIONS = {"convolution", "_convolution"}
FLASH_MAX_HEAD_DIM = 256  # FlashAttention-2 as built into torch
MEMORY_EFFICIENT_MAX_VALUE_DIM = (
    128  # above it the kernel keeps an fp32 accumulator of the output's shape
)
MASK_ALIGNMENT = 8  # elements; an attention bias whose last side is no multiple is padded


def tensor_bytes(tensor: torch.Tensor) -> int:
    """Logical bytes of ``tensor``: elements times element size."""
    return tensor.numel() * tensor.element_size()


def dtype_class(tensor: torch.Tensor) -> str:
    """``half`` for 2-byte floats, ``fp32`` for 4-byte floats, else ``other``."""
    if tensor.dtype in (torch.float16, torch.bfloat16):
        return "half"
    return "fp32" if tensor.dtype == torch.float32 else "other"


def matmul_flop(name: str, args: tuple[Any, ...]) -> float:
    """2 m n k (times the batch) of a matrix product; shapes ``[m, k] x [k, n]`` or ``[b, m, k] x [b, k, n]``."""
    left, right = (args[1], args[2]) if name.startswith(("addm", "badd")) else (args[0], args[1])
    return float(2 * left.numel() * (right.shape[-1] if right.dim() > 1 else 1))


def convolution_flop(
    weight: torch.Tensor, source: torch.Tensor, out: torch.Tensor, transposed: bool
) -> float:
    """2 x positions x weights touched per position; a transposed convolution counts the input's positions."""
    positions = (source if transposed else out).numel() // (source if transposed else out).shape[1]
    return 2.0 * positions * weight.numel()


def convolution_workspace_bytes(
    source: torch.Tensor, weight: torch.Tensor, out: torch.Tensor
) -> int:
    """Bytes cuDNN takes beside the operands of an NCHW convolution.

    In half precision it lays input, weight and output out again as NHWC, so their bytes; in fp32 the output and twice
    the weight. Measured with default cuDNN (published SD1.5, FLUX and Qwen-Image VAE decodes); unverified elsewhere.
    """
    if source.element_size() == 2:
        return tensor_bytes(source) + tensor_bytes(weight) + tensor_bytes(out)
    return tensor_bytes(out) + 2 * tensor_bytes(weight)


def attention_flop(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> float:
    """2 matrix products over the full score matrix; shapes ``[batch, heads, length, head_dim]``."""
    scores = prod(q.shape[:-1]) * k.shape[-2]
    return 2.0 * scores * (q.shape[-1] + v.shape[-1])


def attention_workspace_bytes(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor | None
) -> int:
    """Bytes a fused attention kernel takes beside q, k, v and its output.

    FlashAttention (half types, head_dim <= 256, no mask) keeps one fp32 log-sum-exp per query; the memory-efficient
    kernel keeps the same, a bias in q's dtype when the mask is boolean or unaligned, and an fp32 accumulator when the
    value dim is above 128 in half precision.
    """
    rows = prod(q.shape[:-1])
    log_sum_exp = 4 * rows
    flash = q.element_size() == 2 and q.shape[-1] <= FLASH_MAX_HEAD_DIM and mask is None
    if flash:
        return log_sum_exp
    extra = 0
    if q.element_size() == 2 and v.shape[-1] > MEMORY_EFFICIENT_MAX_VALUE_DIM:
        extra += 4 * rows * v.shape[-1]
    if mask is not None:
        if mask.dtype == torch.bool:
            extra += mask.numel() * (q.element_size() + 1)
        if mask.shape[-1] % MASK_ALIGNMENT:
            padded = -(-mask.shape[-1] // MASK_ALIGNMENT) * MASK_ALIGNMENT
            extra += mask.numel() // mask.shape[-1] * padded * q.element_size()
    return log_sum_exp + extra


def math_attention_workspace_bytes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> int:
    """Bytes of the unfused path: scores and softmax, and for half types fp32 copies of q, k and v."""
    scores = prod(q.shape[:-1]) * k.shape[-2] * 4
    copies = 4 * (q.numel() + k.numel() + v.numel()) if q.element_size() == 2 else 0
    return 2 * scores + copies
