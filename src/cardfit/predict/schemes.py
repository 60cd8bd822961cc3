"""Weight schemes: what a linear layer's weight becomes in storage, and what its forward needs beside it.

In: a weight's elements, rows and compute item size. Out: the bytes of the tensors that replace it, of the copy in
compute precision, of what making that copy takes, and per token of what quantizing the activation takes. Storage and
peaks were read from the libraries' own code and tensors on CPU: bitsandbytes 0.50.2, torchao 0.18.0, optimum-quanto
0.2.7, gguf 0.19.0, diffusers 0.42.1 (GGUF, Nunchaku). Left out: kernels that a compiled extension brings (quanto's
Marlin and AWQ, GGUF's CUDA kernels) and what torch.compile fuses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Parts = Callable[[int, int, int], tuple[int, ...]]  # (elements, rows, item bytes) -> bytes a tensor


@dataclass(frozen=True, slots=True)
class Scheme:
    """How one scheme stores a weight of ``count`` elements and what its forward holds.

    ``parts`` gives the stored tensors. With ``copies`` the weight is back in compute precision for the layer's
    forward; ``making`` is the peak of making that copy, the copy included, in bytes an element (``cast_making`` where
    it is cast from fp16 to another type in the end). ``quantizing`` is what quantizing takes beside the half-precision
    weight and ``parts``, in bytes an element; ``arriving`` likewise what packing takes when a stored weight first comes
    to the card. Per token: ``taking`` bytes an input channel while the activation is quantized; then ``beside_in`` an
    input and ``beside_out`` an output channel beside the output, and ``beside`` whatever the channels. ``widening`` is
    added to ``taking`` and ``beside_out`` where the compute precision is not fp16. ``on_card``: the library quantizes
    on the card as it loads.
    """

    parts: Parts
    copies: bool = False
    making: float = 0
    cast_making: float = 0
    quantizing: float = 0
    arriving: float = 0
    taking: float = 0
    beside_in: float = 0
    beside_out: float = 0
    beside: int = 0
    widening: float = 0
    on_card: bool = False


# -- bitsandbytes --------------------------------------------------------------------------------------------------

NF4_BLOCK = 64  # weights per fp32 absmax, bitsandbytes' default without double quantization
NF4_CODE_BYTES = 64  # the 16 fp32 values of the code, held by every layer


def _bnb_int8(count: int, rows: int, item: int) -> tuple[int, ...]:
    return count, 4 * rows


def _nf4(count: int, rows: int, item: int) -> tuple[int, ...]:
    return -(-count // 2), 4 * -(-count // NF4_BLOCK), NF4_CODE_BYTES


# -- torchao -------------------------------------------------------------------------------------------------------

INT4_GROUP = 128  # weights per bf16 scale and zero point, torchao's default


def _ao_int8(count: int, rows: int, item: int) -> tuple[int, ...]:
    return count, 4 * rows, rows  # Int8Tensor: fp32 scale and int8 zero point per row


def _ao_fp8(count: int, rows: int, item: int) -> tuple[int, ...]:
    return count, 4 * rows  # Float8Tensor, weight only: fp32 scale per row


def _ao_fp8dq(count: int, rows: int, item: int) -> tuple[int, ...]:
    return count, 4  # granularity left open is PerTensor: one fp32 scale


def _ao_int4(count: int, rows: int, item: int) -> tuple[int, ...]:
    groups = -(-count // INT4_GROUP)
    return -(-count // 2), item * groups, item * groups


# -- quanto --------------------------------------------------------------------------------------------------------

QUANTO_GROUP = 128
# QModuleMixin's buffers input_scale and output_scale: one element each, on the card with the layer
_QUANTO_SCALES = (2, 2)


def quanto_group(columns: int) -> int | None:
    """Weights per scale and shift of 4- and 2-bit layers; None: one per row (QModuleMixin, optimum-quanto 0.2.7).

    >>> quanto_group(3072), quanto_group(96), quanto_group(160), quanto_group(130)
    (128, None, 32, None)
    """
    group = QUANTO_GROUP
    if columns <= group:
        return None
    while columns % group and group > 32:
        group -= 32
    return group if columns % group == 0 else None


def _quanto_bytes(count: int, rows: int, item: int) -> tuple[int, ...]:
    return count, item * rows, *_QUANTO_SCALES


def _quanto_int4(count: int, rows: int, item: int) -> tuple[int, ...]:
    group = quanto_group(count // rows) or count // rows
    if (
        group == QUANTO_GROUP and item == 2
    ):  # packed for torch's int4 kernel, scale and shift together
        return -(-count // 2), 2 * item * -(-count // group), *_QUANTO_SCALES
    return -(-count // 2), item * -(-count // group), item * -(-count // group), *_QUANTO_SCALES


def _quanto_int2(count: int, rows: int, item: int) -> tuple[int, ...]:
    group = quanto_group(count // rows) or count // rows
    return -(-count // 4), item * -(-count // group), item * -(-count // group), *_QUANTO_SCALES


# -- GGUF ----------------------------------------------------------------------------------------------------------

# type -> (weights a block, bytes a block): gguf 0.19.0, constants.py, GGML_QUANT_SIZES (a test compares)
GGUF_BLOCKS: dict[str, tuple[int, int]] = {
    "q8_0": (32, 34),
    "q6_k": (256, 210),
    "q5_k": (256, 176),
    "q5_1": (32, 24),
    "q5_0": (32, 22),
    "q4_k": (256, 144),
    "q4_1": (32, 20),
    "q4_0": (32, 18),
    "q3_k": (256, 110),
    "q2_k": (256, 84),
}
# type -> bytes an element that dequantizing to fp16 holds at most, the result included: diffusers 0.42.1,
# quantizers/gguf/utils.py, dequantize_blocks_* (a test runs them and counts)
GGUF_MAKING: dict[str, float] = {
    "q8_0": 2,
    "q6_k": 5.125,
    "q5_k": 7.1875,
    "q5_1": 10,
    "q5_0": 10,
    "q4_k": 5.1875,
    "q4_1": 5,
    "q4_0": 3,
    "q3_k": 5.3125,
    "q2_k": 5.25,
}


def _gguf(name: str) -> Scheme:
    block, size = GGUF_BLOCKS[name]

    def parts(count: int, rows: int, item: int) -> tuple[int, ...]:
        if (count // rows) % block:  # such a layer stays as it is in the file
            return (item * count,)
        return (count // block * size,)

    making = GGUF_MAKING[name]
    return Scheme(parts, copies=True, making=making, cast_making=max(making, 4))


# -- SVDQuant ------------------------------------------------------------------------------------------------------

SVDQ_RANK = 32  # of the branch in compute precision (nunchaku's published checkpoints)
SVDQ_GROUP = {"int4": 64, "nvfp4": 16}
AWQ_GROUP = 64


def _svdq(precision: str) -> Parts:
    """diffusers 0.42.1, quantizers/nunchaku/utils.py, SVDQW4A4Linear."""
    group = SVDQ_GROUP[precision]
    scale = 1 if precision == "nvfp4" else None  # fp8 scales, else in compute precision

    def parts(count: int, rows: int, item: int) -> tuple[int, ...]:
        columns = count // rows
        more = (item * rows, item) if precision == "nvfp4" else ()
        return (
            rows * (columns // 2),
            columns // group * rows * (scale or item),
            item * columns,
            item * columns * SVDQ_RANK,
            item * rows * SVDQ_RANK,
            *more,
        )

    return parts


def awq_parts(count: int, rows: int, item: int) -> tuple[int, ...]:
    """Layers of SVDQuant checkpoints that make modulations: 4 bits, scale and zero per 64 (AWQW4A16Linear)."""
    groups = count // rows // AWQ_GROUP * rows
    return rows * (count // rows // 2), item * groups, item * groups


# -- the table -----------------------------------------------------------------------------------------------------

SCHEMES: dict[str, Scheme] = {
    # MatMul8bitLt: the activation in fp16, its magnitudes and a mask, then int8; an int32 product and its fp16 form
    "bnb-int8": Scheme(_bnb_int8, taking=4, beside_in=1, beside_out=4, widening=2, on_card=True),
    "bnb-nf4": Scheme(_nf4, copies=True, making=2, on_card=True),
    "torchao-int8": Scheme(_ao_int8, copies=True, making=2, quantizing=7),
    # _quantize_affine on the activation; _int_mm's int32 product and its fp32 form
    "torchao-int8dq": Scheme(_ao_int8, quantizing=7, taking=8, beside_in=1, beside_out=6),
    # dequantized through fp32: cast, scaled, then in compute precision
    "torchao-fp8": Scheme(_ao_fp8, copies=True, making=10, cast_making=10, quantizing=14),
    "torchao-fp8dq": Scheme(_ao_fp8dq, quantizing=14, taking=15, beside_in=1),
    "torchao-int4": Scheme(_ao_int4, quantizing=7),
    "quanto-int8": Scheme(_quanto_bytes, copies=True, making=2),
    "quanto-fp8": Scheme(_quanto_bytes, copies=True, making=4, cast_making=4),
    # torch's int4 kernel multiplies as stored; packing goes through int32 on the card
    "quanto-int4": Scheme(_quanto_int4, arriving=8),
    "quanto-int2": Scheme(_quanto_int2, copies=True, making=3, cast_making=3),
    **{f"gguf-{name}": _gguf(name) for name in GGUF_BLOCKS},
    # the activation in 4 bits with its scales, and the branch's fp32 activation
    "svdq-int4": Scheme(_svdq("int4"), beside_in=0.5 + 2 / 64, beside=4 * SVDQ_RANK),
    "svdq-nvfp4": Scheme(_svdq("nvfp4"), beside_in=0.5 + 1 / 16, beside=4 * SVDQ_RANK),
}
