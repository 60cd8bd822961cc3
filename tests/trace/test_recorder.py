"""The recorder against hand-computed births and deaths, and against a plain tracker on real tensors."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from cardfit.trace.recorder import Recorder
from cardfit.trace.stream import Op, Stream

META = torch.device("meta")


def record(call: Any, *args: torch.Tensor, **options: Any) -> tuple[Recorder, Stream, Any]:
    """One component call under a fresh recorder: the recorder, the stream and what came back."""
    recorder = Recorder(**options)
    with torch.no_grad(), recorder:
        out = recorder.component_call(0, "forward", 0, call, args, {})
    return recorder, recorder.streams[0], out


def peak(stream: Stream, *, workspaces: bool = True) -> int:
    """The most bytes alive at once among those born in ``stream``."""
    alive: dict[int, int] = {}
    highest = 0
    for op, a, b, _ in stream.events:
        if op == Op.BIRTH:
            alive[a] = b
        elif op == Op.DEATH:
            alive.pop(a)
        extra = b if op == Op.WORKSPACE and workspaces else 0
        highest = max(highest, sum(alive.values()) + extra)
    return highest


class PlainTracker(TorchDispatchMode):
    """The simplest tracker: every storage that an operation returns, counted until it dies."""

    def __init__(self, known: list[torch.Tensor]) -> None:
        super().__init__()
        self.sizes: dict[int, int] = {}
        self.refs: dict[int, Any] = {}
        self.known = {t.untyped_storage()._cdata for t in known}
        self.highest = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        out = func(*args, **(kwargs or {}))
        for tensor in out if isinstance(out, (tuple, list)) else (out,):
            if isinstance(tensor, torch.Tensor):
                storage = tensor.untyped_storage()
                key = storage._cdata
                if key not in self.sizes and key not in self.known:
                    self.sizes[key] = storage.nbytes()
                    self.refs[key] = weakref.ref(storage, lambda _, k=key: self.sizes.pop(k, None))
        self.highest = max(self.highest, sum(self.sizes.values()))
        return out


def births(stream: Stream) -> list[int]:
    return [e[2] for e in stream.events if e[0] == Op.BIRTH]


def test_a_temporary_dies_before_the_next_is_born() -> None:
    def call(x: torch.Tensor) -> torch.Tensor:
        y = x + 1  # 4 MB, alone
        z = y * 2  # 4 MB beside y
        del y
        return z - 3  # 4 MB beside z

    _, stream, out = record(call, torch.zeros(10, 100, 1000))
    assert peak(stream) == 2 * 4_000_000
    assert out.shape == (10, 100, 1000)
    assert out.device.type == "cpu"
    assert births(stream) == [4_000_000] * 3
    assert len(stream.outputs) == 1


def test_a_view_is_no_birth_and_a_weight_is_no_activation() -> None:
    linear = torch.nn.Linear(1000, 500, device=META, dtype=torch.bfloat16)
    _, stream, _ = record(linear, torch.zeros(4, 300, 1000, dtype=torch.bfloat16))
    assert births(stream) == [4 * 300 * 500 * 2]
    (work,) = stream.work
    assert (work.kind, work.dtype, work.flop) == ("matmul", "half", 2 * 4 * 300 * 1000 * 500)


@pytest.mark.parametrize(
    ("dtype", "workspace"),
    [
        # half: input + weight + output; fp32: output + 2 x weight
        (torch.float16, (3 * 64 * 64 + 8 * 3 * 9 + 8 * 64 * 64) * 2),
        (torch.float32, (8 * 64 * 64 + 2 * 8 * 3 * 9) * 4),
    ],
)
def test_a_convolution_takes_its_workspace(dtype: torch.dtype, workspace: int) -> None:
    conv = torch.nn.Conv2d(3, 8, 3, padding=1, bias=False, device=META, dtype=dtype)
    _, stream, _ = record(conv, torch.zeros(1, 3, 64, 64, dtype=dtype))
    assert [e[2] for e in stream.events if e[0] == Op.WORKSPACE] == [workspace]
    assert peak(stream) == 8 * 64 * 64 * dtype.itemsize + workspace
    (work,) = stream.work
    assert work.flop == 2 * 8 * 64 * 64 * 3 * 9


def test_a_fused_norm_keeps_no_fp32_copy() -> None:
    norm = torch.nn.RMSNorm(1024, device=META, dtype=torch.bfloat16)
    x = torch.zeros(1, 512, 1024, dtype=torch.bfloat16)
    _, fused, _ = record(norm, x)
    assert peak(fused) == 512 * 1024 * 2 + 512 * 4
    _, unfused, _ = record(norm, x, fused_rms_norm=False)
    assert peak(unfused) >= 2 * 512 * 1024 * 4


def test_a_call_seen_before_is_replayed_with_fresh_outputs() -> None:
    calls = []

    def call(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x * 2

    recorder = Recorder()
    with torch.no_grad(), recorder:
        x = torch.zeros(1, 64, 64)
        first = recorder.component_call(0, "forward", 0, call, (x,), {})
        second = recorder.component_call(0, "forward", 0, call, (x,), {})
        other = recorder.component_call(0, "forward", 0, call, (torch.zeros(1, 64, 32),), {})
    assert (len(calls), len(recorder.streams)) == (2, 2)
    assert first.shape == second.shape
    assert other.shape == (1, 64, 32)
    assert first.untyped_storage().data_ptr() != second.untyped_storage().data_ptr()
    written = [e for e in recorder.timeline.events if e[0] == Op.CALL]
    assert [e[1] for e in written] == [0, 0, 1]


def test_masks_keep_their_contents() -> None:
    def call(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        assert int(mask.sum()) == 3  # a length read by the model's own code
        return x[mask]

    mask = torch.tensor([[True, True, True, False, False]])
    _, _, out = record(call, torch.zeros(1, 5, 2000, dtype=torch.bfloat16), mask)
    assert out.shape == (3, 2000)


def test_large_arithmetic_between_calls_costs_no_memory() -> None:
    recorder = Recorder()
    with torch.no_grad(), recorder:
        video = torch.zeros(1, 3, 400, 2000, 2000)  # 19 GB
        halved = (video / 2 + 0.5).clamp(0, 1)
    assert halved.shape == video.shape
    assert halved.stride() == video.stride()
    born = [e[2] for e in recorder.timeline.events if e[0] == Op.BIRTH]
    assert born == [3 * 400 * 2000 * 2000 * 4] * 4


@pytest.mark.parametrize("side", [8, 24])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_the_dry_run_sees_what_a_plain_tracker_sees_on_real_tensors(
    side: int, dtype: torch.dtype
) -> None:
    from diffusers import AutoencoderKL

    config: dict[str, Any] = {
        "block_out_channels": (16, 32), "down_block_types": ("DownEncoderBlock2D",) * 2,
        "up_block_types": ("UpDecoderBlock2D",) * 2, "norm_num_groups": 4, "mid_block_add_attention": False,
    }  # fmt: skip
    real = AutoencoderKL(**config).to(dtype).eval()
    latent = torch.zeros(2, 4, side, side, dtype=dtype)
    tracker = PlainTracker([*real.parameters(), *real.buffers(), latent])
    with torch.no_grad(), tracker:
        real.decode(latent, return_dict=False)
    with torch.device("meta"):
        weightless = AutoencoderKL(**config).to(dtype).eval()

    def call(z: torch.Tensor) -> Any:
        return weightless.decode(z, return_dict=False)

    _, stream, _ = record(call, latent)
    assert peak(stream, workspaces=False) == tracker.highest
