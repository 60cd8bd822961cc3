"""Attention's rules: by hand, against torch's own unfused path, and against the outputs of its kernels on meta."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

from cardfit.errors import BadRequest
from cardfit.trace import attention
from cardfit.trace.attention import Asked, kernel_for, scratch_bytes
from cardfit.trace.recorder import Recorder
from cardfit.trace.stream import Op, Stream

META = torch.device("meta")


def record(call: Any, *args: torch.Tensor, **options: Any) -> Stream:
    """The stream of one component call under a fresh recorder."""
    recorder = Recorder(**options)
    with torch.no_grad(), recorder:
        recorder.component_call(0, "forward", 0, call, args, {})
    return recorder.streams[0]


def peak(stream: Stream) -> int:
    """The most bytes alive at once among those born in ``stream``, workspaces included."""
    alive: dict[int, int] = {}
    highest = 0
    for op, a, b, _ in stream.events:
        if op == Op.BIRTH:
            alive[a] = b
        elif op == Op.DEATH:
            alive.pop(a, None)
        extra = b if op == Op.WORKSPACE else 0
        highest = max(highest, sum(alive.values()) + extra)
    return highest


def asked(
    *shape: int, dtype: torch.dtype = torch.float16, value_dim: int | None = None, **options: Any
) -> Asked:
    q = torch.empty(shape, dtype=dtype, device=META)
    v = torch.empty((*shape[:-1], value_dim or shape[-1]), dtype=dtype, device=META)
    return Asked(q, q, v, **options)


def attend(q: torch.Tensor, mask: torch.Tensor | None = None, **options: Any) -> torch.Tensor:
    return F.scaled_dot_product_attention(q, q, q, attn_mask=mask, **options)


class Tracker(TorchDispatchMode):
    """Births and deaths of real tensors; a safe softmax is taken apart as torch takes it apart inside."""

    def __init__(self) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.refs: dict[int, Any] = {}
        self.highest = 0

    def _note(self, tensor: torch.Tensor) -> None:
        storage = tensor.untyped_storage()
        key = storage._cdata
        if key not in self.sizes:
            self.sizes[key] = storage.nbytes()
            self.refs[key] = weakref.ref(storage, lambda _, k=key: self.sizes.pop(k, None))
        self.highest = max(self.highest, sum(self.sizes.values()))

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        name = func._overloadpacket.__name__
        if name == "_safe_softmax":
            out = torch.softmax(args[0], args[1])
            self._note(out)
            self._note(torch.isneginf(args[0]))
            return out
        out = func(*args, **(kwargs or {}))
        if not func.is_view:
            self._note(out)
        return out


def test_flash_keeps_its_output_and_a_value_per_query() -> None:
    q = torch.zeros(1, 2, 256, 64, dtype=torch.bfloat16)
    stream = record(attend, q)
    assert peak(stream) == 2 * 256 * 64 * 2 + 2 * 256 * 4
    assert stream.work[0].flop == 2 * 2 * (256 * 256 * 64) * 2
    kept = torch.ops.aten._scaled_dot_product_flash_attention(q.to(META), q.to(META), q.to(META))
    assert kept[0].nbytes == 2 * 256 * 64 * 2
    assert kept[1].nbytes == scratch_bytes(Asked(q, q, q), "flash")[1]


def test_flash_pads_heads_that_are_no_multiple_of_8() -> None:
    before, beside = scratch_bytes(asked(1, 2, 100, 44), "flash")
    assert before == 3 * 2 * 100 * 48 * 2
    assert beside == before + 4 * 2 * 100


def test_the_efficient_kernel_keeps_nothing_without_gradients() -> None:
    q = torch.empty(2, 3, 100, 40, dtype=torch.float16, device=META)
    out, log_sum_exp, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        q, q, q, None, False
    )
    assert log_sum_exp.numel() == 0
    assert scratch_bytes(Asked(q, q, q), "efficient") == (0, 0)
    assert peak(record(attend, q.new_zeros(q.shape, device="cpu"), attention="efficient")) == (
        out.nbytes
    )


def test_a_wide_value_costs_an_accumulator_in_half_precision_only() -> None:
    assert scratch_bytes(asked(1, 8, 64, 160), "efficient") == (0, 4 * 8 * 64 * 160)
    assert scratch_bytes(asked(1, 8, 64, 128), "efficient") == (0, 0)
    assert scratch_bytes(asked(1, 8, 64, 160, dtype=torch.float32), "efficient") == (0, 0)


def test_a_boolean_mask_costs_its_bias() -> None:
    q = torch.zeros(1, 2, 256, 64, dtype=torch.float16)
    mask = torch.ones(1, 1, 256, 256, dtype=torch.bool)
    stream = record(attend, q, mask)
    spent = [e[2] for e in stream.events if e[0] == Op.WORKSPACE]
    assert spent == [256 * 256 * 2] * 2  # made before the output is born, kept beside it


@pytest.mark.parametrize(
    ("shape", "before", "beside"),
    [
        ((1, 1, 16, 16), 0, 0),  # aligned: taken as it is
        ((1, 1, 16, 13), 16 * 16 * 2, 16 * 16 * 2),  # 13 padded to 16
    ],
)
def test_an_unaligned_bias_is_padded(shape: tuple[int, ...], before: int, beside: int) -> None:
    mask = torch.zeros(shape, dtype=torch.float16, device=META)
    assert attention.bias_bytes(mask, 2) == (before, beside)


def test_an_unaligned_boolean_mask_is_held_twice_for_a_moment() -> None:
    mask = torch.zeros(1, 1, 16, 13, dtype=torch.bool, device=META)
    assert attention.bias_bytes(mask, 2) == (16 * 13 * 2 + 16 * 16 * 2, 16 * 16 * 2)


@pytest.mark.parametrize(
    ("call", "kernel"),
    [
        (asked(1, 2, 64, 256), "flash"),
        (asked(1, 2, 64, 264), "efficient"),  # flash ends at 256
        (asked(1, 2, 64, 64, dtype=torch.float32), "efficient"),
        (asked(1, 2, 64, 64, mask=torch.empty(64, 64, device=META)), "efficient"),
        (asked(1, 2, 64, 44, mask=torch.empty(64, 64, device=META)), "math"),  # 44 is no 8 x n
        (asked(2, 64, 64), "math"),  # fused kernels take four dimensions
        (asked(1, 2, 64, 64, dtype=torch.float64), "math"),
    ],
)
def test_torch_picks_the_first_kernel_that_takes_the_call(call: Asked, kernel: str) -> None:
    assert kernel_for(call) == kernel
    assert kernel_for(call, "math") == "math"
    assert kernel_for(call, "efficient") != "flash"


def test_grouped_heads_need_flash() -> None:
    q = torch.empty(1, 8, 64, 64, dtype=torch.float16, device=META)
    k = torch.empty(1, 2, 64, 64, dtype=torch.float16, device=META)
    assert kernel_for(Asked(q, k, k, grouped=True)) == "flash"
    assert kernel_for(Asked(q, k, k, grouped=True), "efficient") == "math"


def test_the_unfused_path_by_hand() -> None:
    q = torch.zeros(1, 2, 256, 64, dtype=torch.bfloat16)
    stream = record(attend, q, attention="math")
    scores, copy = 2 * 256 * 256, 2 * 256 * 64 * 4
    # fp32 copies of q, k, v and the scaled q; scores, softmax and the search for masked rows at 4 + 4 + 1 bytes
    assert peak(stream) == 4 * copy + 9 * scores + 2 * 256
    (work,) = [w for w in stream.work if w.kind == "attention" and w.dtype == "fp32"]
    assert work.flop == 2 * 2 * (256 * 256 * 64) * 2


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("masked", ["no", "bool", "float", "causal"])
@pytest.mark.parametrize("batch", [1, 2])
def test_the_unfused_path_is_torchs_own(dtype: torch.dtype, masked: str, batch: int) -> None:
    q = torch.zeros(batch, 4, 128, 32, dtype=dtype)
    mask = None
    if masked in ("bool", "float"):
        mask = torch.zeros(1, 1, 128, 128, dtype=torch.bool if masked == "bool" else dtype)
    options = {"is_causal": True} if masked == "causal" else {}
    tracker = Tracker()
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), tracker:
        attend(q, mask, **options)
    given = [q] if mask is None else [q, mask]
    stream = record(lambda *args: attend(*args, **options), *given, attention="math")
    # besides: one byte per row, the answer of the search for masked rows
    assert abs(peak(stream) - tracker.highest) <= batch * 4 * 128


def test_a_safe_softmax_takes_nine_bytes_a_score() -> None:
    from torch.profiler import ProfilerActivity, profile

    scores = torch.zeros(1, 2, 500, 500)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        torch.ops.aten._safe_softmax(scores, -1)
    spent = {event.name: event.cpu_memory_usage for event in seen.events()}
    assert spent["aten::_softmax"] == 4 * scores.numel()
    assert spent["aten::isneginf"] == scores.numel()
    assert spent["aten::where"] == 0  # in place


def test_flash_by_name_says_who_cannot_run_it() -> None:
    q = torch.zeros(1, 2, 256, 64)
    recorder = Recorder(attention="flash", flash_on={0: "transformer"})
    with pytest.raises(BadRequest, match="transformer.*float32"), torch.no_grad(), recorder:
        recorder.component_call(0, "forward", 0, attend, (q,), {})
    mask = torch.zeros(1, 1, 256, 256, dtype=torch.float16)
    recorder = Recorder(attention="flash", flash_on={0: "transformer"})
    with pytest.raises(BadRequest, match="mask"), torch.no_grad(), recorder:
        recorder.component_call(0, "forward", 0, attend, (q.half(), mask), {})
    assert peak(record(attend, q, attention="flash", flash_on={1: "unet"})) > 0


@given(
    st.integers(1, 3),
    st.integers(1, 8),
    st.integers(1, 300),
    st.integers(1, 40).map(lambda n: 8 * n),
    st.sampled_from([torch.float16, torch.float32]),
)
def test_a_card_without_flash_never_needs_less_by_more_than_the_log_sum_exp(
    batch: int, heads: int, length: int, dim: int, dtype: torch.dtype
) -> None:
    call = asked(batch, heads, length, dim, dtype=dtype)
    kernel = kernel_for(call)
    old = kernel_for(call, "efficient")
    assert old == "efficient"
    more = scratch_bytes(call, old)[1] - scratch_bytes(call, kernel)[1]
    assert more >= -4 * call.rows
    if kernel == "flash":
        assert attention.more_without_flash_bytes(call) == max(0, more)


@given(st.integers(1, 64), st.integers(1, 64))
def test_a_longer_call_needs_no_less(length: int, more: int) -> None:
    for dtype in (torch.float16, torch.float32):
        small, large = (
            asked(1, 2, length, 64, dtype=dtype),
            asked(1, 2, length + more, 64, dtype=dtype),
        )
        kernel = kernel_for(small)
        assert scratch_bytes(small, kernel)[1] <= scratch_bytes(large, kernel)[1]
        assert attention.flop(small, kernel) < attention.flop(large, kernel)
