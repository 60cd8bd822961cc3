"""What a kernel costs: FLOPs, and the scratch memory it takes beside its operands.

One explicit rule per family for both memory and FLOPs, since a CPU build of torch picks other kernels than CUDA does;
attention has a module of its own. Left out: algorithms that cuDNN picks by benchmarking, and kernels of other vendors.
"""

from __future__ import annotations

from typing import Any

import torch

MATMULS = {"mm", "addmm", "bmm", "baddbmm", "addmv", "mv", "dot", "_scaled_mm", "_int_mm"}
CONVOLUTIONS = {"convolution", "_convolution"}


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
