"""Upscalers: sizes against the published weight files, tiles against the whole, peaks by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.predict.memory import estimate
from cardfit.predict.totals import totals
from cardfit.request import UPSCALERS, Post, Request, Settings, Upscale
from cardfit.trace.post import post_traces
from cardfit.trace.stream import Trace
from cardfit.trace.swinir import SwinIR
from cardfit.trace.upscalers import NETWORKS, SRVGG, TILE_PAD, RRDBNet, upscaled
from cardfit.units import MIB

# tensors of the published files: RealESRGAN_x4plus.pth 16,697,987 and so on
PUBLISHED = {
    "realesrgan-x4plus": 16_697_987,
    "realesrgan-x4plus-anime": 4_467_779,
    "realesrgan-x2plus": 16_703_171,
    "realesr-general-x4v3": 1_213_296,
    "realesr-animevideov3": 621_424,
    # the paper's 11.9 million (table 2, classical, 4 x) with the other ending, held below
    "swinir-real-x4": 11_715_559,
}


@pytest.mark.parametrize("name", UPSCALERS)
def test_every_network_has_as_many_parameters_as_published(name: Any) -> None:
    with torch.device("meta"):
        network = NETWORKS[name]()
    assert sum(each.numel() for each in network.parameters()) == PUBLISHED[name]
    factor = Upscale(model=name).own_factor
    with torch.no_grad():
        assert network(torch.zeros(1, 3, 32, 48, device="meta")).shape == (
            1,
            3,
            32 * factor,
            48 * factor,
        )


@pytest.mark.parametrize(("network", "factor"), [(SRVGG(2, 8), 4), (RRDBNet(1, 8, 4, factor=2), 2)])
def test_tiles_make_the_same_size_and_inside_a_small_reach_the_same_picture(
    network: torch.nn.Module, factor: int
) -> None:
    torch.manual_seed(0)
    frame = torch.rand(1, 3, 48, 64)
    with torch.no_grad():
        whole = upscaled(network, frame, factor, None)
        tiled = upscaled(network, frame, factor, 32)
    assert tiled.shape == whole.shape == (1, 3, 48 * factor, 64 * factor)
    if isinstance(network, SRVGG):  # four convolutions reach 4 pixels, less than the padding
        assert torch.allclose(tiled, whole, atol=1e-5)
    assert (tiled - whole).abs().mean() < 0.05 * whole.std()


def traced(model: Any, tile: int | None = None, frames: int = 1) -> Trace:
    name = "wan2.1-t2v-1.3b" if frames > 1 else "sdxl-base"
    steps = (Post(upscale=Upscale(model=model, tile=tile)),)
    asked = Request(model=name, width=512, height=512, num_frames=frames, post=steps)
    exact, _ = resolve(load(name), asked)
    return post_traces(exact)[0]


def test_the_peak_is_the_last_convolutions_at_the_large_size() -> None:
    """At 2048 x 2048 a map of 64 channels in fp16 takes 512 MiB; the second doubling holds the map before it too."""
    found = estimate(traced("realesrgan-x4plus"), Settings(offload="none"))
    (post,) = [stage for stage in found.stages if stage.name == "post"]
    # two large maps and the workspace of the convolution between them: its input, its output
    assert 4 * 512 * MIB <= post.activation_bytes < 5.5 * 512 * MIB
    assert post.weights_bytes == pytest.approx(2 * PUBLISHED["realesrgan-x4plus"], rel=0.01)
    tiled = estimate(traced("realesrgan-x4plus", 128), Settings(offload="none"))
    (small,) = [stage for stage in tiled.stages if stage.name == "post"]
    side = (128 + 2 * TILE_PAD) / 512
    assert (
        small.calls == 16
        and small.activation_bytes < 1.3 * side**2 * post.activation_bytes + 50 * MIB
    )


def test_frames_are_work_and_no_memory() -> None:
    one, many = traced("realesr-animevideov3"), traced("realesr-animevideov3", frames=5)
    settings = Settings(offload="none")
    assert estimate(one, settings).reserved_bytes == estimate(many, settings).reserved_bytes
    flop = [sum(w.flop for s in totals(each).stages for w in s.work) for each in (one, many)]
    assert flop[1] == pytest.approx(5 * flop[0])
    # a convolution's FLOPs: 2 x 9 x in x out a pixel, 16 of 64 channels and the two at the ends
    per_pixel = 2 * 9 * (3 * 64 + 16 * 64 * 64 + 64 * 48)
    assert flop[0] == pytest.approx(per_pixel * 512 * 512, rel=0.02)


def test_a_second_step_gets_what_the_first_made() -> None:
    first, second = (
        Post(upscale=Upscale(model="realesr-animevideov3", factor=2)) for _ in range(2)
    )
    exact, _ = resolve(
        load("sdxl-base"), Request(model="sdxl-base", width=512, height=512, post=(first, second))
    )
    assert exact.size_after_post == (2048, 2048)
    assert [(t.request.width, t.request.height) for t in post_traces(exact)] == [
        (512, 512),
        (1024, 1024),
    ]


def test_swinir_is_the_papers_size_and_looks_across_windows() -> None:
    with torch.device("meta"):
        classical = SwinIR(shuffle=True)
    # arXiv 2108.10257, table 2: 11.9 million parameters at 4 x
    assert round(sum(each.numel() for each in classical.parameters()) / 1e6, 1) == 11.9
    torch.manual_seed(0)
    network = SwinIR(12, 1, 2, 2, 8)
    frame = torch.rand(1, 3, 21, 30)
    with torch.no_grad():
        made = network(frame)
        other = frame.clone()
        other[..., 0, 0] += 1
        moved = (network(other) - made).abs().sum(1)[0]
    assert made.shape == (1, 3, 84, 120)
    # a window and its shifted neighbour, with convolutions around them; never the far corner
    assert moved[:48, :48].max() > 0 and moved[60:, 80:].max() == 0
