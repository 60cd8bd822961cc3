"""Disk for the published files: parameters times the bytes of the dtype they are published in."""

from __future__ import annotations

import pytest

from cardfit.library.load import all_models, load
from cardfit.library.models import Model
from cardfit.library.rules import resolve
from cardfit.predict.disk import disk_bytes, disk_parts, second_copy_bytes
from cardfit.request import Request


def test_flux_by_hand() -> None:
    # transformer, T5-XXL encoder, CLIP-L text model and VAE, all published in bfloat16
    params = 11_901_408_320 + 4_762_310_656 + 123_060_480 + 83_819_683
    assert disk_bytes(load("flux.1-dev")) == pytest.approx(2 * params, rel=1e-6)


@pytest.mark.parametrize("model", all_models(), ids=lambda model: model.id)
def test_every_model_has_a_size_between_one_and_eight_bytes_a_parameter(model: Model) -> None:
    params = sum(part.params for part in model.components.values() if part.counted)
    assert params <= disk_bytes(model) <= 8 * params


def test_latents_and_outputs_by_hand() -> None:
    model = load("wan2.1-t2v-14b")
    request, _ = resolve(model, Request(model=model.id, width=1280, height=720, num_frames=81))
    assert disk_parts(model, request) == {
        "weights": disk_bytes(model),
        "latents": 16 * 21 * 90 * 160 * 4,
        "outputs": 81 * 1280 * 720 * 3,
    }


def test_a_second_copy_is_only_for_systems_without_symbolic_links() -> None:
    model = load("flux.1-dev")
    assert second_copy_bytes(model, "linux") == 0
    assert second_copy_bytes(model, "windows") == disk_bytes(model)
