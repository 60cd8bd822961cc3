"""The rules that rebuild a row, each on a row made by hand."""

from __future__ import annotations

import pytest

from cardfit.accuracy.rebuild import NotRebuilt, Why, architecture_of, model_of, rebuild


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("FLUX.1-dev", "flux.1-dev"),
        ("FLUX.1-dev transformer", "flux.1-dev"),
        ("SD1.5 VAE", "stable-diffusion-1.5"),
        ("SDXL VAE", "sdxl-base"),
        ("SDXL-base-1.0 UNet", "sdxl-base"),
        ("CogVideoX-2B", "cogvideox-2b"),
        ("LTX-Video", "ltx-video-2b-0.9.0"),
        ("LTX-Video (2B)", "ltx-video-2b-0.9.0"),
        ("LTX-Video-0.9.7-dev transformer", "ltx-video-13b"),
        ("Cosmos-Predict2-14B-Text2Image", "cosmos-predict2-14b-t2i"),
        ("Wan-AI/Wan2.1-T2V-14B-Diffusers", "wan2.1-t2v-14b"),
    ],
)
def test_published_names_find_their_entry(name, model):
    assert model_of(name) == model


@pytest.mark.parametrize(
    "name", ["ConsisID (CogVideoX-5B based)", "CogVideoX (variant not stated)", "Nothing-1", ""]
)
def test_other_names_are_not_guessed(name):
    with pytest.raises(NotRebuilt) as caught:
        model_of(name)
    assert caught.value.why is Why.MODEL_UNKNOWN


@pytest.mark.parametrize(
    ("cells", "why"),
    [
        ({"notes": "OUTCOME: OOM on 24 GB", "peak_gib_reported": ""}, Why.OUT_OF_MEMORY_ROW),
        ({"notes": "MULTI-GPU: four cards"}, Why.MULTI_GPU),
        ({"framework": "stable-diffusion.cpp"}, Why.OTHER_RUNTIME),
        ({"framework": "OneDiff OneFlow"}, Why.OTHER_RUNTIME),
        ({"framework": "official code"}, Why.OTHER_RUNTIME),
        ({"peak_gib_reported": ""}, Why.NO_PEAK),
        ({"width": ""}, Why.NO_SIZE),
        ({"model": "CogVideoX-5B", "width": "720", "height": "480"}, Why.NO_SIZE),
        ({"model": "Nothing-1"}, Why.MODEL_UNKNOWN),
        ({"quantization": "some int3 (transformer)"}, Why.SCHEME_UNKNOWN),
        ({"quantization": "bnb nf4 (tokenizer)"}, Why.SCHEME_UNKNOWN),
        ({"quantization": "fp8 (transformer), nf4 (T5)"}, Why.SCHEME_UNKNOWN),
        ({"precision_weights": "q4_0"}, Why.SCHEME_UNKNOWN),
        ({"offload": "other"}, Why.OFFLOAD_UNKNOWN),
        ({"offload": ""}, Why.OFFLOAD_UNKNOWN),
        ({"notes": "PEAK IS THE LOAD/QUANTISE PHASE"}, Why.LOAD_PEAK),
        ({"notes": "OUTLIER, exclude"}, Why.SUSPECT),
        ({"notes": "VAE decoder compiled too"}, Why.SETTING_UNKNOWN),
        ({"notes": "tiny autoencoder replaces VAE"}, Why.MODEL_UNKNOWN),
        ({"scope": "weights_only"}, Why.SCOPE_UNKNOWN),
        ({"scope": "unknown"}, Why.SCOPE_UNKNOWN),
        ({"num_frames": "81"}, Why.DRY_RUN_FAILED),
        ({"vae_slicing": "yes", "model": "Lumina-Image-2.0", "batch": "999"}, Why.DRY_RUN_FAILED),
    ],
)
def test_what_cannot_be_rebuilt_has_a_reason_of_the_list(made, cells, why):
    row = made(**cells)
    with pytest.raises(NotRebuilt) as caught:
        rebuild(row)
    assert caught.value.why is why


@pytest.mark.parametrize(
    ("framework", "quantization", "in_place"),
    [
        ("diffusers+torchao", "torchao int8wo (transformer)", True),
        ("diffusers+torchao", "none", False),
        ("diffusers", "torchao int8wo (transformer)", False),
    ],
)
def test_the_study_quantizes_parts_that_were_loaded(made, framework, quantization, in_place):
    row = made(framework=framework, quantization=quantization)
    assert rebuild(row).in_place is in_place


def test_a_warm_up_that_was_excluded_is_no_doubt(made):
    assert rebuild(made(notes="warm-up excluded; two runs")).model.id == "flux.1-dev"


def test_a_whole_run_takes_the_row_at_its_word(made):
    found = rebuild(made(gpu="H100 80GB", batch="4", offload="model", vae_tiling="yes"))
    assert (found.scope, found.architecture) == ("full", "Hopper")
    assert (found.request.batch, found.request.num_inference_steps) == (4, 28)
    assert found.settings.dtype == {"*": "bfloat16"}
    assert (found.settings.offload, found.settings.vae_tiling) == ("model", True)


def test_a_denoiser_measured_alone_was_warmed_up(made):
    assert rebuild(made(scope="denoise_only", steps="1")).request.num_inference_steps == 2
    assert rebuild(made(steps="1")).request.num_inference_steps == 1


def test_embedded_guidance_is_not_switched_off_with_classifier_free_guidance(made):
    assert rebuild(made(guidance_cfg="no")).request.guidance_scale > 1
    assert rebuild(made(model="SD1.5", guidance_cfg="no")).request.guidance_scale == 1
    assert rebuild(made(model="SD1.5", guidance_cfg="yes")).request.guidance_scale > 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("none", {}),
        ("torchao int8wo (transformer+T5)", {"transformer": 1, "text_encoder_2": 1}),
        ("bnb nf4", {"transformer": 1}),
        ("layerwise fp8_e4m3 storage (transformer)", {"transformer": 1}),
        ("torchao fp8dqrow (transformer+TE)", dict.fromkeys(("transformer", "text_encoder", "text_encoder_2"), 1)),
    ],
)  # fmt: skip
def test_a_scheme_reaches_the_parts_it_names(made, text, expected):
    assert set(rebuild(made(quantization=text)).settings.quantization) == set(expected)


def test_fused_projections_are_a_setting(made):
    assert rebuild(made(notes="28 steps; fused QKV; transformer-only compile")).settings.fuse_qkv
    assert rebuild(made(notes="28 steps")).settings.fuse_qkv is None


def test_a_load_peak_is_scored_where_loading_is_a_stage_of_the_prediction(made):
    cells = {
        "notes": "PEAK IS THE LOAD/QUANTISE PHASE",
        "quantization": "torchao int8wo (transformer)",
    }
    found = rebuild(made(**cells, framework="diffusers+torchao"))
    assert (found.in_place, found.loading) == (True, True)
    assert not rebuild(
        made(framework="diffusers+torchao", quantization=cells["quantization"])
    ).loading


def test_schemes_are_told_apart(made):
    def scheme(text):
        return rebuild(made(quantization=text)).settings.quantization["transformer"]

    assert scheme("torchao int8wo (transformer)") == "torchao-int8"
    assert scheme("torchao int8dq (transformer)") == "torchao-int8dq"
    assert scheme("torchao fp8dqrow (transformer)") == "torchao-fp8dq"
    assert scheme("torchao float8wo (transformer)") == "torchao-fp8"
    assert scheme("bnb int8 (transformer)") == "bnb-int8"
    assert scheme("layerwise fp8 storage (transformer)") == "fp8-layerwise"


def test_a_decode_needs_no_offload(made):
    cells = {"model": "SDXL VAE", "scope": "decode_only", "offload": "", "vae_tiling": "yes"}
    plain = rebuild(made(**cells))
    assert (plain.scope, plain.settings.offload) == ("decode", "none")
    assert plain.settings.vae_tile is None
    with pytest.raises(NotRebuilt) as caught:
        rebuild(made(**cells, notes="tile size not recorded here"))
    assert caught.value.why is Why.TILE_UNKNOWN


def test_an_autoencoder_of_its_own_is_another_runtime(made):
    framework = "InvokeAI benchmark script (diffusers VAE)"
    with pytest.raises(NotRebuilt) as caught:
        rebuild(made(model="FLUX VAE", scope="decode_only", framework=framework))
    assert caught.value.why is Why.OTHER_RUNTIME


@pytest.mark.parametrize(
    ("gpu", "architecture"),
    [
        ("H100", "Hopper"),
        ("H20", "Hopper"),
        ("A800-SXM4-80GB", "Ampere"),
        ("RTX 4090", "Ada Lovelace"),
        ("", None),
        ("MI999", None),
    ],
)
def test_a_card_names_its_generation(gpu, architecture):
    found = architecture_of(gpu)
    assert found == architecture or (architecture and found and architecture.startswith(found))
