"""Frame interpolation: its size against the published file, its picture where nothing moves, its peak and count."""

from __future__ import annotations

import pytest
import torch

import cardfit
from cardfit.cli.flags import posts
from cardfit.errors import BadRequest
from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.predict.memory import estimate
from cardfit.predict.totals import totals
from cardfit.request import Interpolate, Post, Request, Settings, Upscale
from cardfit.trace.interpolators import IFNet, _grid, _warped, between
from cardfit.trace.post import post_traces

WAN = {"model": "wan2.1-t2v-1.3b", "width": 832, "height": 480, "num_frames": 81}
TWICE = Post(interpolate=Interpolate(times=2))


def exact(*post: Post, **more: object):
    return resolve(load(WAN["model"]), Request(**{**WAN, **more}, post=post))[0]


def test_a_frame_of_the_same_size_comes_out_between_two() -> None:
    torch.manual_seed(0)
    network = IFNet()
    assert sum(each.numel() for each in network.parameters()) == 5_306_256
    before, after = torch.rand(1, 3, 60, 100), torch.rand(1, 3, 60, 100)
    with torch.no_grad():
        made = between(network, before, after, 0.5)
    assert made.shape == before.shape
    # a flow of nothing leaves a frame as it is, one of a pixel to the right looks a pixel further
    grid = _grid(before)
    still = _warped(before, torch.zeros(1, 2, 60, 100), grid)
    assert torch.allclose(still, before, atol=1e-4)
    moved = torch.zeros(1, 2, 60, 100)
    moved[:, 0] = 1
    assert torch.allclose(_warped(before, moved, grid)[..., :-1], before[..., 1:], atol=1e-4)


def test_the_gaps_between_frames_are_counted_and_steps_follow_one_another() -> None:
    (one,) = post_traces(exact(TWICE))
    (three,) = post_traces(exact(Post(interpolate=Interpolate(times=4))))
    assert totals(three).stages[0].calls == 3 * totals(one).stages[0].calls == 3 * 80
    first, second = post_traces(exact(TWICE, Post(upscale=Upscale(model="realesr-animevideov3"))))
    assert totals(second).stages[0].calls == 161
    assert exact(TWICE, TWICE).frames_after_post == 321
    peaks = [
        estimate(each, Settings(offload="none")).stages[-1].allocated_bytes for each in (one, three)
    ]
    assert peaks[0] == peaks[1]  # a gap at a time
    # two frames, two flows and the warped pair at 896 x 512 in half precision are not left out
    assert peaks[0] > 2 * 896 * 512 * (3 + 3 + 4 + 4 + 3 + 3)


def test_a_plan_with_an_interpolation_exports_more_frames_and_says_so() -> None:
    settings = Settings(offload="none")
    plain, doubled = (
        cardfit.plan(Request(**WAN, fps=16, post=post), settings, cards=["rtx-4090"])
        for post in ((), (TWICE,))
    )
    assert doubled.stages[-1].component == "rife-4.6"
    notes = {note.code: note.text for note in doubled.notes}
    assert "81 frames become 161" in notes["plan-post-frames-fps"]
    assert "10.06 s" in notes["plan-post-frames-fps"]
    (before,), (after,) = plain.cards, doubled.cards
    assert after.seconds.likely > before.seconds.likely
    # with eight times the frames they are the most that the host holds
    eight = Request(**WAN, post=(Post(interpolate=Interpolate(times=8)),))
    (most,) = cardfit.plan(eight, settings, cards=["rtx-4090"]).cards
    assert most.host_bytes > 2 * 641 * 832 * 480 * 12


def test_words_and_what_is_refused() -> None:
    assert posts(["interpolate=rife-4.6,times=4"]) == [
        {"interpolate": {"model": "rife-4.6", "times": 4}}
    ]
    for token in ("interpolate=rife-9", "interpolate=rife-4.6,tile=64", "upscale=rife-4.6"):
        with pytest.raises(BadRequest, match="rife-4.6"):
            posts([token])
    with pytest.raises(ValueError, match="one of upscale and interpolate"):
        Post()
    image = resolve(load("sdxl-base"), Request(model="sdxl-base", post=(TWICE,)))[0]
    with pytest.raises(BadRequest, match="between two"):
        post_traces(image)
