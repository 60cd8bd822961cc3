"""The values of a field by the model's rules, and the search among them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.errors import BadRequest
from cardfit.library.load import load
from cardfit.library.rules import resolve
from cardfit.plan.vary import edge, nearest, steps
from cardfit.request import ExactRequest, Request


def exact(model: str, **fields: int) -> ExactRequest:
    return resolve(load(model), Request(model=model, **fields))[0]


def values(model: str, vary: str, most: int | None = None, **fields: int) -> list[str]:
    request = exact(model, **fields)
    return [step.text for step in steps(load(model), request, vary, most)]


def test_frames_are_those_of_the_models_grid():
    assert values("wan2.1-t2v-14b", "num_frames", 17) == ["1", "5", "9", "13", "17"]
    assert values("cogvideox-2b", "num_frames", 20) == ["1", "8", "9", "16", "17"]
    assert values("animatediff-sd1.5", "num_frames")[-1] == "32"  # the model's own end


def test_sizes_keep_the_aspect_ratio_and_the_multiple():
    found = steps(load("wan2.1-t2v-14b"), exact("wan2.1-t2v-14b", width=1280, height=720), "size")
    assert "1280x720" in [step.text for step in found]
    assert [step.work for step in found] == sorted({step.work for step in found})
    for step in found:
        width, height = step.fields["width"], step.fields["height"]
        assert width % 16 == height % 16 == 0 and max(width, height) <= 8192
        assert abs(width - height * 1280 / 720) <= 8  # half a multiple


def test_a_tall_size_stays_tall():
    (first, *_, last) = values("sdxl-base", "size", 1024, width=512, height=1024)
    assert first == "8x16" or first == "16x32"
    assert last == "512x1024"


def test_sizes_of_a_list_are_those_of_about_the_asked_ratio():
    found = values("hunyuandit-v1.2", "size", width=1024, height=1024)
    assert found == ["1024x1024", "1280x1280"]


def test_batches():
    assert values("sdxl-base", "batch", 3) == ["1", "2", "3"]
    assert values("sdxl-base", "batch")[-1] == "64"


@pytest.mark.parametrize(
    ("model", "vary", "named"),
    [
        ("sdxl-base", "num_frames", "makes pictures"),
        ("flux.1-kontext", "size", "makes one size"),
        ("cogvideox-5b-i2v", "size", "makes one size"),
    ],
)
def test_nothing_to_vary_is_said(model, vary, named):
    with pytest.raises(BadRequest, match=named):
        values(model, vary)


def test_the_search_starts_at_what_was_asked():
    request = exact("wan2.1-t2v-14b", num_frames=81)
    found = steps(load("wan2.1-t2v-14b"), request, "num_frames")
    assert found[nearest(found, request)].text == "81"


@given(st.integers(1, 200), st.data())
def test_where_larger_is_harder_the_edge_is_found_in_few_looks(count, data):
    start = data.draw(st.integers(0, count - 1))
    last = data.draw(st.integers(-1, count - 1))
    looked: set[int] = set()

    def holds(at: int) -> bool:
        looked.add(at)
        return at <= last

    found = edge(count, start, holds)
    assert (found.at, found.monotone) == (None if last < 0 else last, True)
    assert len(looked) <= 2 * count.bit_length() + 4
    assert looked <= set(range(count))


@given(st.lists(st.booleans(), min_size=1, max_size=40), st.data())
def test_whatever_holds_the_answer_holds_and_the_next_does_not(pattern, data):
    start = data.draw(st.integers(0, len(pattern) - 1))
    found = edge(len(pattern), start, lambda at: pattern[at])
    if found.at is None:
        assert not pattern[0] or not pattern[start]
        return
    assert pattern[found.at]
    assert found.at == len(pattern) - 1 or not pattern[found.at + 1]
    if found.monotone and found.at > 0:
        assert pattern[found.at - 1]
        assert found.at + 2 >= len(pattern) or not pattern[found.at + 2]
