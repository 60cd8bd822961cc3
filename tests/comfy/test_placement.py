"""ComfyUI's own placement: verdicts that follow from bytes, on estimates written by hand."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.comfy.placement import (
    WorkflowFacts,
    decode_bytes,
    place,
    reckoned_bytes,
    reserve_bytes,
    rules,
)
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.predict.estimate import HostMoment, MemoryEstimate, StageMemory
from cardfit.request import Request
from cardfit.units import GIB, MIB

WAN = load("wan2.1-t2v-14b")
CLIP, _ = resolve(WAN, Request(model=WAN.id, width=832, height=480, num_frames=81))


def stage(name, weights, working):
    return StageMemory(
        name=name,
        component="x",
        calls=1,
        weights_bytes=weights,
        activation_bytes=working,
        allocated_bytes=weights + working,
        reserved_bytes=weights + working,
        low_bytes=weights + working,
        high_bytes=weights + working,
        basis="rule",
        site="",
    )


def estimate(weights=14 * GIB, working=3 * GIB, vae=GIB // 2, decode=5 * GIB, host=30 * GIB):
    stages = (stage("denoise", weights, working), stage("decode", vae, decode))
    peak = max(each.allocated_bytes for each in stages)
    return MemoryEstimate(
        stages=stages,
        peak_stage="denoise",
        allocated_bytes=peak,
        reserved_bytes=peak,
        reserved_low_bytes=peak,
        reserved_high_bytes=peak,
        host_bytes=host,
        failure=None,
        left_out=(),
        host=(HostMoment("run", 0, host, host, 0, (("frames", GIB),)),),
    )


def placed(usable, found=None, **more):
    return place(WAN, CLIP, found or estimate(), usable, **more)


def test_everything_fits():
    found = placed(24 * GIB)
    assert (found.verdict, found.paged_bytes, found.falls_back) == ("fits", 0, False)
    assert found.resident_bytes == found.weights_bytes == 14 * GIB


def test_what_comfyui_reckons_with_is_kept_free_though_less_is_needed():
    """Its own figure for a step of this clip is 5.9 GiB, ours 3: it pages before it must."""
    reckoned = reckoned_bytes(WAN, CLIP)
    assert reckoned / GIB == pytest.approx(5.9, abs=0.05)
    free = 18 * GIB - reserve_bytes("linux", None)
    assert placed(18 * GIB).paged_bytes == 14 * GIB + reckoned - free


@pytest.mark.parametrize(
    ("model", "fields", "gib"),
    [  # worked examples of the table of factors
        ("sdxl-base", {"width": 1024, "height": 1024}, 0.26),
        ("flux.1-dev", {"width": 1024, "height": 1024}, 0.99),
        ("qwen-image", {"width": 1328, "height": 1328}, 0.97),
        ("wan2.1-t2v-14b", {"width": 1280, "height": 720, "num_frames": 81}, 13.6),
        ("hunyuanvideo", {"width": 1280, "height": 720, "num_frames": 129}, 16.7),
        ("ltx-video-2b", {"width": 704, "height": 480, "num_frames": 161}, 0.74),
        ("mochi-1", {"width": 848, "height": 480, "num_frames": 163}, 7.0),
    ],
)
def test_what_comfyui_reckons_with(model, fields, gib):
    entry = load(model)
    exact, _ = resolve(entry, Request(model=model, **fields))
    assert reckoned_bytes(entry, exact) / GIB == pytest.approx(gib, rel=0.02)


def test_a_model_without_a_factor_is_placed_by_what_it_needs():
    entry = load("allegro")
    exact, _ = resolve(entry, Request(model="allegro"))
    assert reckoned_bytes(entry, exact) is None


def test_weights_are_paged_on_a_small_card():
    found = placed(12 * GIB)
    assert found.verdict == "pages"
    assert found.resident_bytes + found.paged_bytes == 14 * GIB
    assert found.resident_bytes + found.working_bytes <= 12 * GIB


def test_a_step_that_is_too_large_ends_the_run():
    found = placed(12 * GIB, estimate(working=13 * GIB))
    assert (found.verdict, found.limit) == ("does_not_fit", "denoise")
    assert found.over_bytes == 13 * GIB - (12 * GIB - reserve_bytes("linux", None))


def test_a_plain_decode_falls_back_to_tiles_and_the_tiled_node_does_not():
    large = estimate(decode=40 * GIB)
    plain = placed(24 * GIB, large)
    assert (plain.verdict, plain.falls_back) == ("fits", True)
    tiled = placed(24 * GIB, large, decoder=WorkflowFacts(tiled=True, tile=1024))
    assert (tiled.verdict, tiled.limit) == ("does_not_fit", "decode")
    small = placed(24 * GIB, large, decoder=WorkflowFacts(tiled=True, tile=256))
    assert small.verdict == "fits"


def test_tiles_in_time_help_where_all_frames_are_decoded_at_once():
    """Temporal 4096 is no tiling in time: a template had it, and 12 GB were not enough."""
    entry = load("ltx-video-2b")
    clip, _ = resolve(entry, Request(model=entry.id, width=768, height=512, num_frames=97))
    large = estimate(weights=4 * GIB, working=GIB, decode=14 * GIB)
    off = place(
        entry, clip, large, 11 * GIB, decoder=WorkflowFacts(tiled=True, tile=768, temporal=4096)
    )
    on = place(
        entry, clip, large, 11 * GIB, decoder=WorkflowFacts(tiled=True, tile=768, temporal=32)
    )
    assert (off.verdict, off.limit) == ("does_not_fit", "decode")
    assert on.verdict == "fits"


def test_host_memory():
    assert placed(24 * GIB, ram_bytes=64 * GIB).verdict == "fits"
    short = placed(24 * GIB, ram_bytes=20 * GIB)
    assert (short.verdict, short.from_disk) == ("pages", True)
    none = placed(24 * GIB, ram_bytes=8 * GIB)
    assert (none.verdict, none.limit) == ("does_not_fit", "host")


def test_guidance_is_batched_only_where_it_fits():
    entry = load("sdxl-base")
    assert entry.cfg.batched
    exact, _ = resolve(entry, Request(model=entry.id, guidance_scale=7))
    found = place(entry, exact, estimate(weights=5 * GIB, working=4 * GIB), 24 * GIB)
    assert found.working_bytes == 2 * GIB


def test_the_reserve():
    assert reserve_bytes("linux", 24 * GIB) == 400 * MIB
    assert reserve_bytes("windows", 12 * GIB) == 600 * MIB
    assert reserve_bytes("windows", 24 * GIB) == 700 * MIB
    assert all(each.factor > 0 for each in rules().factors)


@given(
    usable=st.integers(2, 96),
    weights=st.integers(1, 64),
    working=st.integers(0, 32),
    decode=st.integers(0, 64),
    tile=st.sampled_from([None, 256, 512, 1024]),
)
def test_laws(usable, weights, working, decode, tile):
    found = estimate(weights * GIB, working * GIB, decode=decode * GIB)
    how = WorkflowFacts(tiled=tile is not None, tile=tile)
    here = placed(usable * GIB, found, decoder=how)
    order = ("does_not_fit", "pages", "fits")
    larger = placed((usable + 8) * GIB, found, decoder=how)
    assert order.index(larger.verdict) >= order.index(here.verdict)
    assert larger.paged_bytes <= here.paged_bytes
    assert here.resident_bytes + here.paged_bytes == here.weights_bytes
    assert (here.verdict == "does_not_fit") == (here.over_bytes > 0) == bool(here.limit)
    if here.verdict != "does_not_fit":
        assert here.peak_bytes <= usable * GIB


@given(tile=st.integers(64, 2048), temporal=st.integers(4, 4096))
def test_a_tile_never_takes_more_than_the_whole(tile, temporal):
    clip = SimpleNamespace(width=1280, height=720, num_frames=121)
    tiled = WorkflowFacts(tiled=True, tile=tile, temporal=temporal)
    assert 0 < decode_bytes(GIB, clip, tiled, by_time=True) <= GIB
