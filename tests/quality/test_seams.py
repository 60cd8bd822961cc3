"""Seams of known strength are found where they are, and clean pictures have none."""

from __future__ import annotations

import clips
import numpy as np
import pytest

from cardfit.quality.seams import FOUND_SCORE, Grid, Seams, needed_score, profiles, tile_grid

SIZE = (360, 640)
GRID = tile_grid(640, 360, 128, 32)
CONTENT = ["gradient", "texture", "shapes", "photo"]


def scores(candidate, grid=GRID, reference=None):
    mean = np.mean(candidate, axis=0, dtype=np.float32)
    of = "candidate" if reference is None else "difference"
    if reference is not None:
        mean = mean - np.mean(reference, axis=0, dtype=np.float32)
    sums = Seams(grid, of, SIZE[1], SIZE[0])
    sums.add(profiles(mean, grid, of))
    return sums.scores()


def clip(name, seed=3):
    return list(clips.CONTENT[name](np.random.default_rng([seed, len(name)]), 8, SIZE))


def test_the_grid_follows_tile_and_overlap():
    assert tile_grid(640, 360, 256) == Grid((256, 512), (256,), 0)
    assert Grid((96, 192, 288, 384, 480, 576), (96, 192, 288), 32) == GRID
    assert tile_grid(180, 180, 256, 64).xs == ()


@pytest.mark.parametrize("name", CONTENT)
def test_a_clean_clip_has_no_seam(name):
    frames = clip(name)
    assert not any(each.found for each in scores(frames))
    coded = clips.coded(frames, 23)
    assert not any(each.found for each in scores(coded, reference=frames))


@pytest.mark.parametrize("name", CONTENT)
@pytest.mark.parametrize("put", [clips.with_tone, clips.with_lines])
def test_a_seam_of_a_level_and_a_half_is_found_against_the_reference(name, put):
    frames = clip(name)
    coded = clips.coded([put(frame, GRID.xs, GRID.ys, 1.5) for frame in frames], 18)
    found = scores(coded, reference=frames)
    assert found[0].found
    assert 0.2 < max(each.step_levels for each in found if each.found) < 2.5


def test_a_seam_is_found_without_a_reference_where_the_picture_is_calm():
    frames = [clips.with_tone(each, GRID.xs, GRID.ys, 1.5) for each in clip("shapes")]
    best = scores(frames)[0]
    assert best.found and best.of == "candidate"
    line, first, last = best.worst
    assert line in (GRID.xs if best.direction == "vertical" else GRID.ys)
    assert 0 <= first < last <= 640


def test_a_seam_elsewhere_is_not_on_the_grid():
    frames = [clips.with_tone(each, (50, 150, 250), (70, 250), 3) for each in clip("shapes")]
    assert not any(each.found for each in scores(frames))


def test_a_single_crooked_tile_is_placed():
    frames = clip("shapes")
    marked = []
    for frame in frames:
        more = frame.astype(np.int16)
        more[:, 288:] += 3  # one line only
        marked.append(np.clip(more, 0, 255).astype(np.uint8))
    found = scores(marked, Grid((288,), (), 0), reference=frames)
    assert found[0].found and found[0].worst == (288, 0, 360)


def test_a_blended_difference_of_tone_is_found_against_the_reference():
    frames = clip("photo")
    columns = np.arange(640)
    ramp = np.zeros(640)
    for at, line in enumerate(GRID.xs):
        ramp += (-1) ** at * 2.0 * np.clip((columns - line) / 32, 0, 1)
    marked = [np.clip(np.rint(frame + ramp), 0, 255).astype(np.uint8) for frame in frames]
    found = scores(marked, reference=frames)
    assert any(each.found and each.look == "blend" for each in found)


def test_a_grid_without_lines_has_no_score():
    assert scores(clip("shapes"), Grid((), (), 0)) == ()


def test_the_fewer_segments_a_grid_has_the_more_they_have_to_show():
    rng = np.random.default_rng(1)
    assert needed_score(12) == needed_score(40) == FOUND_SCORE
    assert needed_score(2) > needed_score(4) > needed_score(8) > FOUND_SCORE
    means = np.square(rng.normal(size=(400_000, 4))).mean(
        axis=1
    )  # what chance gives to four segments
    middle = np.median(means)
    spread = 1.4826 * np.median(np.abs(means - middle))
    assert np.mean((means - middle) / spread >= needed_score(4)) < 3e-4
    assert np.mean((means - middle) / spread >= FOUND_SCORE) > 8e-4
