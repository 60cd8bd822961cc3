"""The latent's arithmetic as rental guides state it."""

from __future__ import annotations

from math import prod

from hypothesis import given
from hypothesis import strategies as st

from cardfit.library import load


def test_sdxl_at_1024_is_65536_elements_and_128_kib() -> None:
    shape = load("sdxl-base").latent_shape(1024, 1024)
    assert shape == (1, 4, 128, 128)
    assert prod(shape) == 65_536
    assert prod(shape) * 2 == 128 * 2**10


@given(side=st.integers(8, 256).map(lambda n: 8 * n), batch=st.integers(1, 16))
def test_a_doubled_edge_is_four_times_and_a_batch_is_linear(side: int, batch: int) -> None:
    model = load("sdxl-base")
    one = prod(model.latent_shape(side, side))
    assert prod(model.latent_shape(2 * side, 2 * side)) == 4 * one
    assert prod(model.latent_shape(side, side, batch=batch)) == batch * one


def test_a_causal_video_vae_keeps_the_first_frame_alone() -> None:
    model = load("hunyuanvideo")
    assert model.latent_shape(1280, 720, 129) == (1, 16, 33, 90, 160)
    assert model.latent_shape(1280, 720, 1) == (1, 16, 1, 90, 160)
