"""Entries load, every name finds exactly one of them, and a wrong name is answered with near ones."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter

import pytest

from cardfit.errors import UnknownModel
from cardfit.library import aliases, all_models, load, model_ids, resolve_name, suggest


def test_all_entries_load_under_their_own_id() -> None:
    models = all_models()
    assert len(models) == 85
    assert [model.id for model in models] == list(model_ids())
    for model in models:
        assert model.repo_id == aliases(model.id)[0]


def test_every_name_belongs_to_one_model() -> None:
    names = Counter(
        name.lower() for model_id in model_ids() for name in {model_id, *aliases(model_id)}
    )
    assert [name for name, count in names.items() if count > 1] == []


def test_names_are_found_in_any_case_and_by_repository() -> None:
    assert load("FLUX.1-DEV").id == "flux.1-dev"
    assert load(" black-forest-labs/FLUX.1-dev ").id == "flux.1-dev"
    assert load("sdxl").id == "sdxl-base"
    for model_id in model_ids():
        assert all(resolve_name(name.upper()) == model_id for name in aliases(model_id))


@pytest.mark.parametrize(
    ("typed", "model"),
    [
        ("CompVis/stable-diffusion-v1-4", "stable-diffusion-1.5"),  # the same parts, other weights
        ("black-forest-labs/FLUX.1-Krea-dev", "flux.1-dev"),
        ("stabilityai/stable-diffusion-3-medium", "sd3-medium"),
        ("PixArt-alpha/PixArt-XL-2-1024-MS", "pixart-alpha"),
        ("Tongyi-MAI/Z-Image", "z-image-base"),
        ("z-image", "z-image-turbo"),
    ],
)
def test_published_repositories_are_found(typed: str, model: str) -> None:
    assert load(typed).id == model


def test_an_entry_is_read_once() -> None:
    assert load("svd") is load("stable-video-diffusion")


@pytest.mark.parametrize(
    ("asked", "nearest"),
    [
        ("wan-14b", "wan2.1-t2v-14b"),
        ("hunyan", "hunyuanvideo"),
        ("flux dev", "flux.1-dev"),
        ("sdxll", "sdxl-base"),
        ("qwen-imag-edit", "qwen-image-edit"),
    ],
)
def test_a_near_miss_is_suggested(asked: str, nearest: str) -> None:
    assert suggest(asked)[0] == nearest
    with pytest.raises(UnknownModel, match=f"did you mean {nearest}"):
        load(asked)


def test_nothing_near_gets_no_suggestion() -> None:
    with pytest.raises(UnknownModel) as caught:
        load("§§§§")
    assert "did you mean" not in str(caught.value)
    assert "cardfit models" in str(caught.value)


def test_a_very_long_name_is_refused_quickly() -> None:
    with pytest.raises(UnknownModel):
        load("x" * 100_000)


def test_listing_reads_no_entry_and_no_torch() -> None:
    code = (
        "import sys, importlib\n"
        "l = importlib.import_module('cardfit.library.load')\n"
        "assert len(l.model_ids()) == 85\n"
        "l.load('wan2.1-t2v-14b')\n"
        "assert l._read.cache_info().currsize == 1\n"
        "assert not {'torch', 'diffusers', 'transformers', 'numpy'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_facts_carry_their_source_and_basis() -> None:
    for model in all_models():
        assert model.sources and model.license and model.scheduler.source
        for name, part in model.components.items():
            assert part.source or part.optional, (model.id, name)
            assert part.expected_source, (model.id, name)
            assert (part.expected_params is None) == (part.basis == "none"), (model.id, name)
            if part.basis in ("exact", "listing", "published"):
                assert part.expected_params is not None
                held = part.params + part.persistent_buffers
                off = min(abs(count / part.expected_params - 1) for count in (part.params, held))
                assert off < 0.005, (model.id, name)


def test_an_unverified_model_says_which_part() -> None:
    open_models = {model.id for model in all_models() if not model.verified}
    assert open_models == {
        "cogvideox-5b-i2v",
        "cogvideox1.5-5b-i2v",
        "skyreels-v2-df-1.3b-540p",
        "omnigen2",
        "cogview4-6b",
        "playground-v2.5",
        "qwen-image-edit-2511",
        "sana-0.6b",
        "sana-sprint-1.6b",
        "sana1.5-4.8b",
        "wan2.1-vace-1.3b",
    }
    assert all(load(name).unverified_parts for name in open_models)


def test_weights_merged_or_optional_are_not_counted() -> None:
    animate = load("animatediff-sd1.5")
    assert not animate.components["motion_adapter"].counted
    assert animate.params == 1_276_658_564 + 123_060_480 + 83_653_863


def test_a_sibling_differs_from_its_base_by_what_its_release_changed() -> None:
    fill, dev = load("flux.1-fill"), load("flux.1-dev")
    assert fill.params - dev.params == (384 - 64) * 3072  # columns of the input projection
    inpainting, plain = load("stable-diffusion-1.5-inpainting"), load("stable-diffusion-1.5")
    assert inpainting.params - plain.params == (9 - 4) * 320 * 3 * 3
    assert load("sdxl-turbo").params == load("playground-v2.5").params == load("sdxl-base").params
    assert load("sd-turbo").params == load("stable-diffusion-2.1").params
    # sd_xl_refiner_1.0.safetensors, 6,075,981,930 bytes, holds these at 2 bytes and a header
    assert 0 < 6_075_981_930 - 2 * load("sdxl-refiner").params < 1_000_000


def test_an_entry_survives_its_own_json() -> None:
    model = load("wan2.2-t2v-a14b")
    assert type(model).model_validate(json.loads(model.model_dump_json(by_alias=True))) == model
