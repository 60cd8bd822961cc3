"""The rules that rebuild a field case and find its card, each on a case made by hand."""

from __future__ import annotations

import csv

import pytest

from cardfit.accuracy.field_cards import card_of
from cardfit.accuracy.field_rebuild import entry_of, rebuild
from cardfit.accuracy.field_rows import COLUMNS, read
from cardfit.accuracy.field_why import FieldWhy, NotScored
from cardfit.units import GIB

PLAIN = {
    "id": "f-1",
    "model": "FLUX.1-dev",
    "width": "1024",
    "height": "1024",
    "batch": "1",
    "precision": "bf16",
    "framework": "diffusers",
    "gpu": "RTX 4090",
    "gpu_vram_gib": "24",
    "outcome": "ok",
    "stage": "denoise",
    "completeness": "full",
}
WAN = {
    "model": "Wan2.1-T2V-1.3B",
    "width": "832",
    "height": "480",
    "frames": "81",
    "framework": "official script",
}


@pytest.fixture
def case(tmp_path):
    def make(**cells):
        path = tmp_path / "field.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerow({**PLAIN, **cells})
        good, bad = read(path)
        assert not bad
        return good[0]

    return make


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("FLUX.1-schnell", "flux.1-schnell"),
        ("LTX-Video (2B, 0.9)", "ltx-video-2b-0.9.0"),
        ("LTX-Video 0.9.6 distilled", "ltx-video-2b"),
        ("LTX-Video 0.9.7 13B", "ltx-video-13b"),
        ("SVD (14 frames)", "svd"),
        ("SVD (25 frames)", "svd-xt"),
        ("HunyuanVideo Q4_0", "hunyuanvideo"),
        ("Wan2.1-I2V-14B-480P fp8", "wan2.1-i2v-14b-480p"),
        ("SDXL base 1.0", "sdxl-base"),
    ],
)
def test_names_as_people_write_them(name, model):
    assert entry_of(name) == model


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("SD 2.1 VAE", FieldWhy.PART_ONLY),
        ("FLUX.1 transformer only", FieldWhy.PART_ONLY),
        ("FLUX.1 (transformer)", FieldWhy.PART_ONLY),
        ("Wan2.1-I2V-14B + Something", FieldWhy.MODEL_UNKNOWN),
        ("", FieldWhy.MODEL_UNKNOWN),
    ],
)
def test_other_names_are_not_guessed(name, why):
    with pytest.raises(NotScored) as caught:
        entry_of(name)
    assert caught.value.why is why


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"gpu": "4x A100 40GB"}, FieldWhy.MULTI_GPU),
        ({"offload": "FSDP sharding"}, FieldWhy.MULTI_GPU),
        ({"framework": "ComfyUI"}, FieldWhy.OTHER_RUNTIME),
        ({"framework": ""}, FieldWhy.OTHER_RUNTIME),
        ({"framework": "official script", "model": "Mochi-1"}, FieldWhy.SCRIPT_UNKNOWN),
        ({"gpu": "not stated", "gpu_vram_gib": ""}, FieldWhy.NO_CARD),
        ({"gpu": "A100-class", "gpu_vram_gib": ""}, FieldWhy.NO_CARD),
        ({"gpu": "AMD 16 GB", "gpu_vram_gib": "16"}, FieldWhy.CARD_UNKNOWN),
        ({"outcome": "host_oom"}, FieldWhy.NO_HOST_RAM),
        ({"outcome": "wrong_output"}, FieldWhy.OTHER_OUTCOME),
        ({"quantization": "int8 optional"}, FieldWhy.SCHEME_UNKNOWN),
        ({"precision": "fp8"}, FieldWhy.SCHEME_UNKNOWN),
        ({"offload": "not stated"}, FieldWhy.OFFLOAD_UNKNOWN),
        ({"offload": "block swap 20"}, FieldWhy.OFFLOAD_UNKNOWN),
        ({"vae_tiling": "project default"}, FieldWhy.TILE_UNKNOWN),
        ({"width": "1001"}, FieldWhy.DRY_RUN_FAILED),
    ],
)
def test_what_cannot_be_rebuilt_says_why(case, cells, why):
    if why is FieldWhy.DRY_RUN_FAILED:
        cells = {**cells, "model": "Wan2.1-T2V-1.3B", "frames": "81"}
    with pytest.raises(NotScored) as caught:
        rebuild(case(**cells))
    assert caught.value.why is why


@pytest.mark.parametrize(
    ("words", "offload"),
    [
        ("", "none"),
        ("none", "none"),
        ("model cpu offload", "model"),
        ("enable_model_cpu_offload()", "model"),
        ("script default (model cpu offload)", "model"),
        ("sequential cpu offload", "sequential"),
        ("group offload leaf-level", "group-leaf"),
        ("group offload to disk", "group-block"),
    ],
)
def test_offload_words(case, words, offload):
    settings = rebuild(case(offload=words)).settings
    assert settings.offload == offload
    assert (settings.offload_to_disk is True) == ("disk" in words)


def test_diffusers_without_a_dtype_loads_fp32(case):
    assert rebuild(case(precision="")).settings.dtype == {"*": "float32"}
    assert rebuild(case(precision="bf16")).settings.dtype == {"*": "bfloat16"}
    wan = {**WAN, "framework": "diffusers"}
    assert rebuild(case(**wan)).settings.dtype == {"*": "bfloat16", "vae": "float32"}
    only = rebuild(case(precision="fp32 decode")).settings.dtype
    assert only == {"vae": "float32"}


@pytest.mark.parametrize(
    ("words", "schemes"),
    [
        ("none", {}),
        ("bnb nf4", {"transformer": "bnb-nf4"}),
        ("bitsandbytes 8-bit", {"transformer": "bnb-int8"}),
        ("torchao float8 weight-only", {"transformer": "torchao-fp8"}),
        ("GGUF Q3_K_S", {"transformer": "gguf-q3_k"}),
        ("T5 in bnb 4-bit", {"text_encoder_2": "bnb-nf4"}),
        ("text encoder bnb nf4", {"text_encoder": "bnb-nf4", "text_encoder_2": "bnb-nf4"}),
    ],
)
def test_quantization_words(case, words, schemes):
    assert rebuild(case(quantization=words)).settings.quantization == schemes


@pytest.mark.parametrize(
    ("words", "tiled", "sliced", "tile", "overlap"),
    [
        ("", False, False, None, None),
        ("off (multi-GPU path)", False, False, None, None),
        ("slicing", False, True, None, None),
        ("on + slicing", True, True, None, None),
        ("slicing + tiling", True, True, None, None),
        ("tile 768, overlap 64", True, False, 768, 64),
    ],
)
def test_tiling_words(case, words, tiled, sliced, tile, overlap):
    if "multi" in words:
        words = words.replace(" (multi-GPU path)", "")
    settings = rebuild(case(vae_tiling=words)).settings
    assert (settings.vae_tiling, settings.vae_slicing) == (tiled, sliced)
    assert (settings.vae_tile, settings.vae_overlap) == (tile, overlap)


def test_a_size_that_nobody_stated_is_the_model_s_own(case):
    request = rebuild(case(width="", height="", completeness="partial")).request
    assert (request.width, request.height) == (1024, 1024)


def test_the_official_wan_script_moves_weights_unless_told_not_to(case):
    habit = rebuild(case(**WAN, offload="")).habit
    assert habit is not None
    assert (habit.moves, habit.elsewhere) == (True, ())
    told = rebuild(case(**WAN, offload="offload_model False")).habit
    assert told is not None
    assert not told.moves
    away = rebuild(case(**WAN, offload="offload_model + t5 on CPU"))
    assert away.habit is not None
    assert away.habit.elsewhere == ("text_encoder",)
    assert away.settings.dtype["transformer"] == "bfloat16"
    assert away.settings.dtype["vae"] == "float32"


def test_a_converted_checkpoint_lies_in_its_compute_precision(case):
    plain = rebuild(case(**WAN)).habit
    told = rebuild(case(**WAN, notes="run with --convert_model_dtype")).habit
    assert plain is not None
    assert told is not None
    assert (dict(plain.script.weights), dict(told.script.weights)) == (
        {"transformer": "float32"},
        {},
    )


def test_the_official_ltx_script_makes_whole_blocks_upwards(case):
    cells = {"model": "LTX-Video 0.9.7 13B", "width": "1216", "height": "704", "frames": "88"}
    assert rebuild(case(**cells, framework="official script")).request.num_frames == 89
    assert rebuild(case(**cells, framework="diffusers")).request.num_frames == 81


def test_windows_is_read_from_the_words(case):
    assert rebuild(case(notes="Windows spills silently")).host.os == "windows"
    assert rebuild(case()).host.os == "linux"


# -- cards ---------------------------------------------------------------------------------------


def test_a_card_of_the_catalog_keeps_its_own_memory():
    plain, stated = card_of("RTX 4090", None), card_of("NVIDIA GeForce RTX 4090", 24 * GIB)
    assert (plain.name, plain.usable) == ("rtx-4090", stated.usable)
    colab = card_of("T4", 15 * GIB)
    assert (colab.name, colab.usable) == ("t4", card_of("T4", 16 * GIB).usable)


def test_the_stated_memory_chooses_among_variants():
    small, large = card_of("A100 40GB", 40 * GIB), card_of("A100", 80 * GIB)
    assert small.usable.high < 40 * GIB < large.usable.low < 80 * GIB
    assert small.architecture == large.architecture == "Ampere"
    assert card_of("A100 80GB", None).usable == large.usable


@pytest.mark.parametrize(
    ("gpu", "size"), [("RTX 4090 Laptop", 16), ("RTX 3060 Laptop", 6), ("RTX 2080 Ti 22GB", 22)]
)
def test_other_memory_is_taken_as_stated(gpu, size):
    band = card_of(gpu, size * GIB).usable
    assert 0.8 * size * GIB < band.low <= band.likely <= band.high < size * GIB


def test_a_class_spans_every_card_of_that_size():
    found = card_of("24 GB class", 24 * GIB)
    for one in ("RTX 4090", "RTX 3090", "L4", "A10G"):
        own = card_of(one, 24 * GIB).usable
        assert found.usable.low <= own.low
        assert own.high <= found.usable.high
    assert found.architecture is None
