"""Chunk edges of known strength, flicker, and a scene's own motion that is neither."""

from __future__ import annotations

import clips
import numpy as np
import pytest

from cardfit.quality.compare import _light
from cardfit.quality.edges import FrameLight, chunk_edges, edge_scores, flicker, log_ratio
from cardfit.quality.metrics import cells

FRAMES, CHUNK = 41, 8


def lights(candidate, reference=None):
    found, last = [], None
    for at, frame in enumerate(candidate):
        luma = frame.astype(np.float32)
        here = luma, cells(luma)
        other = None if reference is None else cells(reference[at].astype(np.float32))
        found.append(_light(here, other, last))
        last = here
    return found


def clip(name):
    return list(clips.CONTENT[name](np.random.default_rng([5, len(name)]), FRAMES, (180, 320)))


def test_edges_of_chunks():
    assert chunk_edges(81, 81) == ()
    assert chunk_edges(25, 8, first=1) == (1, 9, 17)


def test_log_ratio_leaves_out_what_is_dark_or_bright():
    one = np.array([[100, 2, 250, 50]], np.float32)
    assert log_ratio(one * np.float32(1.01), one) == pytest.approx(np.log(1.01), rel=1e-3)
    assert log_ratio(np.full((2, 2), 3, np.float32), np.full((2, 2), 3, np.float32)) is None


@pytest.mark.parametrize("name", ["shapes", "photo", "texture"])
@pytest.mark.parametrize("once", [False, True])
def test_one_per_cent_is_found_and_sized(name, once):
    frames = clip(name)
    marked = clips.with_gain(frames, CHUNK, 0.01, once=once)
    found = edge_scores(lights(marked, frames), chunk_edges(FRAMES, CHUNK))
    best = next(each for each in found if each.look == "brightness")
    assert best.found and best.of == "difference"
    assert best.size == pytest.approx(0.01, rel=0.3)
    assert best.frame in chunk_edges(FRAMES, CHUNK)
    if once:
        assert best.frame == 16 and best.edges_found == 1


@pytest.mark.parametrize("name", ["shapes", "photo", "gradient"])
def test_moving_content_alone_has_no_edge(name):
    frames = clip(name)
    assert not any(
        each.found for each in edge_scores(lights(frames, frames), chunk_edges(FRAMES, CHUNK))
    )


def test_a_fade_is_no_edge():
    random = np.random.default_rng(1)
    frame = random.integers(60, 200, (180, 320)).astype(np.float32)
    faded = [np.clip(frame * (1 - 0.01 * at), 0, 255).astype(np.uint8) for at in range(FRAMES)]
    assert not any(each.found for each in edge_scores(lights(faded), chunk_edges(FRAMES, CHUNK)))


def test_a_jump_of_the_picture_at_a_window_is_found():
    frames = clip("photo")
    jumped = [np.roll(frame, 12, axis=1) if at >= 20 else frame for at, frame in enumerate(frames)]
    found = edge_scores(lights(jumped), (20,))
    assert [each.look for each in found if each.found] == ["jump"]


def test_nothing_can_be_told_of_a_few_frames():
    few = [FrameLight(100.0, None, None, None)] * 3
    assert edge_scores(few, (1,)) == ()
    assert edge_scores(few, ()) == ()
    assert flicker(few) is None


def test_flicker_is_measured_away_from_the_edges():
    frames = clip("photo")
    marked = clips.with_gain(frames, 1, 0.02)  # every second frame
    assert flicker(lights(marked, frames)) == pytest.approx(1.4826 * 0.0198, rel=0.1)
    assert flicker(lights(frames, frames)) == pytest.approx(0, abs=1e-5)
