"""What the models make of a request, by hand for each family, then laws for all of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cardfit.errors import BadRequest, Note
from cardfit.library import FrameRule, load, model_ids
from cardfit.library.load import all_models
from cardfit.library.rules import (
    CHUNKED_FORWARD,
    DEFAULT_PROMPT_TOKENS,
    allegro_latent_frames,
    made_frames,
    resolve,
    settings_allowed,
)
from cardfit.request import ExactRequest, Request, Settings


def exact(name: str, **fields: Any) -> tuple[ExactRequest, dict[str, Note]]:
    result, notes = resolve(load(name), Request(model=name, **fields))
    return result, {note.code: note for note in notes}


def refused(name: str, **fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        exact(name, **fields)
    return caught.value


def test_open_fields_take_the_models_defaults_and_say_so() -> None:
    result, notes = exact("wan2.1-14b")
    assert result == ExactRequest(
        model="wan2.1-t2v-14b",
        task="text-to-video",
        width=1280,
        height=720,
        num_frames=81,
        fps=16,
        num_inference_steps=50,
        guidance_scale=5.0,
        prompt_tokens=DEFAULT_PROMPT_TOKENS,
    )
    taken = notes["defaults-taken"].text
    assert "num_frames 81" in taken and "width 1280" in taken and "guidance_scale 5" in taken


def test_given_fields_stay_and_are_not_named_as_defaults() -> None:
    result, notes = exact("flux", width=768, height=512, batch=4, seed=3, guidance_scale=0.0)
    assert (result.width, result.height, result.batch, result.seed) == (768, 512, 4, 3)
    assert result.guidance_scale == 0.0
    assert "width" not in notes["defaults-taken"].text


@pytest.mark.parametrize(
    ("kind", "step", "asked", "made"),
    [
        ("round", 4, 80, 81),  # 80 // 4 * 4 + 1
        ("round", 4, 83, 81),
        ("round", 4, 81, 81),
        ("round", 4, 3, 1),
        ("floor", 4, 80, 77),  # 20 latent frames
        ("floor", 8, 120, 113),
        ("floor", 8, 121, 121),
        ("floor", 6, 162, 157),
        ("cogvideox", 4, 49, 49),  # 13 latent frames
        ("cogvideox", 4, 53, 56),  # 14 latent frames: no single first picture
        ("cogvideox", 4, 48, 48),  # 12 latent frames
        ("any", 1, 17, 17),
    ],
)
def test_frames_by_hand(kind: Any, step: int, asked: int, made: int) -> None:
    rule = FrameRule(kind=kind, step=step)
    assert made_frames(rule, asked) == made
    assert made_frames(rule, made) == made


@pytest.mark.parametrize(
    ("name", "asked", "made"),
    [
        ("wan2.1-t2v-1.3b", 80, 81),
        ("skyreels-v2-t2v-14b-540p", 96, 97),
        ("kandinsky-5-t2v-lite", 120, 121),
        ("hunyuanvideo", 128, 125),
        ("hunyuanvideo-1.5-720p-t2v", 120, 117),
        ("cosmos-predict2-2b-v2w", 92, 89),
        ("ltx-video-2b", 160, 153),
        ("ltx-2", 120, 113),
        ("mochi-1", 84, 79),
        ("cogvideox-5b", 53, 56),
    ],
)
def test_frames_of_each_family_are_said_aloud(name: str, asked: int, made: int) -> None:
    result, notes = exact(name, num_frames=asked)
    assert result.num_frames == made
    text = notes["frames-become"].text
    assert str(asked) in text and str(made) in text


def test_an_even_number_of_latents_decodes_to_four_frames_each() -> None:
    torch = pytest.importorskip("torch")
    diffusers = pytest.importorskip("diffusers")
    vae = diffusers.AutoencoderKLCogVideoX(
        block_out_channels=(8, 8, 8, 8),
        down_block_types=("CogVideoXDownBlock3D",) * 4,
        up_block_types=("CogVideoXUpBlock3D",) * 4,
        layers_per_block=1,
        norm_num_groups=4,
        latent_channels=4,
    )
    rule = FrameRule(kind="cogvideox", step=4)
    for latents in range(1, 6):
        with torch.no_grad():
            frames = vae.decode(torch.zeros(1, 4, latents, 2, 2)).sample.shape[2]
        assert made_frames(rule, 4 * (latents - 1) + 1) == frames


def test_720_becomes_704_is_said_with_both_values() -> None:
    result, notes = exact("wan2.2-ti2v-5b", width=1280, height=720)
    assert (result.width, result.height) == (1280, 704)
    assert notes["side-becomes"].text.startswith("720 becomes 704 for this model")


def test_a_rescaled_size_is_said_with_both_values() -> None:
    result, notes = exact("hidream-i1", width=2048, height=2048)
    assert (result.width, result.height) == (1024, 1024)
    assert "2048 x 2048 becomes 1024 x 1024" in notes["size-becomes"].text


def test_a_binned_size_stays_as_asked_because_the_output_is_resized() -> None:
    result, notes = exact("sana-1.6b", width=1000, height=1000)
    assert (result.width, result.height) == (1000, 1000)
    assert "made as 1024 x 1024" in notes["size-resized"].text


@pytest.mark.parametrize(
    ("name", "width", "height", "code"),
    [
        ("stable-diffusion-1.5", 508, 512, "size-not-multiple"),
        ("sd3.5-large", 1000, 1000, "size-not-multiple"),
        ("sd3.5-large", 3088, 1024, "size-too-large"),
        ("wan2.1-t2v-14b", 1280, 728, "size-not-multiple"),
        ("hunyuanvideo", 1288, 720, "size-not-multiple"),
        ("ltx-video-2b", 720, 480, "size-not-multiple"),
        ("mochi-1", 840, 488, "size-not-multiple"),
        ("auraflow", 1536, 1024, "size-too-large"),
        ("cogvideox-5b-i2v", 1360, 768, "size-fixed"),
        ("wan2.2-ti2v-5b", 16, 720, "size-too-small"),
        ("allegro", 304, 720, "size-below-tile"),
        ("cosmos-predict2-2b-t2i", 2064, 768, "size-too-large"),
    ],
)
def test_sizes_that_cannot_be_made(name: str, width: int, height: int, code: str) -> None:
    error = refused(name, width=width, height=height)
    assert error.code == code
    assert f"{width} x {height}" in str(error)


def test_a_refused_size_names_the_nearest_one() -> None:
    assert "Nearest: 736 x 480" in str(refused("ltx-video-2b", width=730, height=480))


def test_frames_that_cannot_be_made() -> None:
    assert refused("animatediff", num_frames=33).code == "frames-too-many"
    assert "32" in str(refused("animatediff", num_frames=33))
    assert refused("skyreels-v2-df-1.3b-540p", num_frames=121).code == "frames-too-many"
    assert refused("sdxl", num_frames=2).code == "frames-of-image-model"
    assert refused("allegro", num_frames=16).code == "frames-below-tile"
    assert exact("sdxl", num_frames=1)[0].num_frames == 1


def test_allegro_leaves_the_rest_of_a_tile_blank() -> None:
    # 88 frames are 22 latent ones: tiles of 6 every 4 end at 22; 80 frames are 20: the last ends at 18
    assert (allegro_latent_frames(88), allegro_latent_frames(80)) == (22, 20)
    assert "frames-left-blank" not in exact("allegro", num_frames=88)[1]
    assert "first 72 stay blank" in exact("allegro", num_frames=80)[1]["frames-left-blank"].text


def test_a_task_the_model_lacks_is_refused_with_those_it_has() -> None:
    error = refused("sdxl", task="text-to-video")
    assert "text-to-image, image-to-image, inpainting" in str(error)
    assert exact("sdxl", task="inpainting")[0].task == "inpainting"


def test_fps_is_playback_and_never_changes_the_frames() -> None:
    slow, notes = exact("wan2.1-t2v-14b", fps=8)
    fast, _ = exact("wan2.1-t2v-14b", fps=60)
    assert slow.num_frames == fast.num_frames == 81
    assert notes["plays-for"].text == "81 frames at 8 fps play 10.12 s"
    image, notes = exact("flux", fps=24)
    assert image.fps is None and "fps-of-image-model" in notes


def test_true_cfg_models_have_a_guidance_value() -> None:
    assert exact("qwen-image")[0].guidance_scale == 4.0
    assert load("qwen-image").defaults.guidance_argument == "true_cfg_scale"
    assert exact("svd")[0].guidance_scale == 3.0


def test_prompts_are_cut_where_the_model_cuts_them() -> None:
    result, notes = exact("sdxl", prompt_tokens=200)
    assert result.prompt_tokens == 77
    assert "200" in notes["prompt-truncated"].text
    assert "no-prompt" in exact("svd", prompt_tokens=10)[1]


def test_more_than_a_model_was_made_for_runs_with_a_note() -> None:
    result, notes = exact("wan2.1-t2v-1.3b", width=1280, height=720, num_frames=161)
    assert (result.width, result.num_frames) == (1280, 161)
    assert "832 x 480" in notes["larger-than-made-for"].text
    assert "161" in notes["longer-than-made-for"].text


def test_defaults_are_within_what_a_model_was_made_for() -> None:
    for name in model_ids():
        codes = set(exact(name)[1])
        assert codes <= {"defaults-taken", "plays-for", "pipeline-not-in-diffusers"}, name


_SIDES = st.integers(1, 160).map(lambda n: 16 * n)


@given(
    name=st.sampled_from(model_ids()),
    width=st.none() | _SIDES | st.integers(16, 2600),
    height=st.none() | _SIDES,
    num_frames=st.none() | st.integers(1, 300),
    prompt_tokens=st.none() | st.integers(1, 4096),
)
def test_resolving_twice_changes_nothing(
    name: str,
    width: int | None,
    height: int | None,
    num_frames: int | None,
    prompt_tokens: int | None,
) -> None:
    model = load(name)
    asked = Request(
        model=name, width=width, height=height, num_frames=num_frames, prompt_tokens=prompt_tokens
    )
    try:
        once, notes = resolve(model, asked)
    except BadRequest as error:
        assert str(error)
        return
    assert all(note.text for note in notes)
    assert min(once.width, once.height, once.num_frames) >= 1
    twice, again = resolve(model, once)
    assert twice == once
    assert not {"defaults-taken", "frames-become", "prompt-truncated"} & {n.code for n in again}


def bad_settings(name: str, **fields: Any) -> BadRequest:
    with pytest.raises(BadRequest) as caught:
        settings_allowed(load(name), Settings(**fields))
    return caught.value


@pytest.mark.parametrize(
    ("name", "fields", "code"),
    [
        ("flux", {"dtype": {"unet": "float16"}}, "no-such-component"),
        ("flux", {"quantization": {"*": "bnb-nf4"}}, "no-such-component"),
        ("svd", {"vae_tiling": True}, "vae-knob-missing"),
        ("svd", {"vae_tile": 256}, "vae-knob-missing"),
        ("svd", {"vae_slicing": True}, "vae-knob-missing"),
        ("wan2.1", {"decode_chunk_size": 4}, "no-decode-chunk"),
        ("allegro", {"vae_tiling": False}, "tiling-required"),
        ("allegro", {"vae_tile": 256}, "tile-fixed"),
        ("flux", {"vae_tiling": False, "vae_tile": 256}, "tile-without-tiling"),
        ("flux", {"vae_tile": 256, "vae_overlap": 256}, "overlap-too-large"),
        ("wan2.1", {"vae_overlap": 300}, "overlap-too-large"),
    ],
)
def test_settings_the_model_cannot_take(name: str, fields: dict[str, Any], code: str) -> None:
    assert bad_settings(name, **fields).code == code


def test_an_unknown_component_is_answered_with_those_there_are() -> None:
    error = bad_settings("flux", dtype={"text_encoder_3": "float16"})
    assert "transformer, text_encoder, text_encoder_2, vae" in str(error)


def test_settings_the_model_takes() -> None:
    wanted = Settings(
        dtype={"*": "bfloat16", "vae": "float32"},
        quantization={"transformer": "bnb-nf4"},
        vae_tile=256,
        vae_overlap=64,
        vae_slicing=True,
    )
    assert settings_allowed(load("flux"), wanted) == ()
    assert settings_allowed(load("svd"), Settings(decode_chunk_size=2)) == ()
    notes = settings_allowed(load("animatediff"), Settings(dtype={"motion_adapter": "float32"}))
    assert [note.code for note in notes] == ["component-not-loaded"]


GROUP = {"offload": "group-block"}


@pytest.mark.parametrize(
    ("fields", "code", "both"),
    [
        ({"offload": "model", "use_stream": True}, "group-knob-alone", ("use_stream", "model")),
        (
            {"offload": "none", "num_blocks_per_group": 2},
            "group-knob-alone",
            ("num_blocks_per_group 2", "none"),
        ),
        (
            {"offload": "sequential", "offload_to_disk": True},
            "group-knob-alone",
            ("offload_to_disk", "sequential"),
        ),
        (
            {"offload": "group-leaf", "num_blocks_per_group": 1},
            "blocks-of-leaves",
            ("num_blocks_per_group 1", "group-leaf"),
        ),
        (
            GROUP | {"num_blocks_per_group": 3, "use_stream": True},
            "blocks-on-stream",
            ("num_blocks_per_group 3", "use_stream"),
        ),
        (
            GROUP | {"low_cpu_mem_usage": True, "use_stream": False},
            "pinning-without-stream",
            ("low_cpu_mem_usage", "use_stream False"),
        ),
        (
            GROUP | {"low_cpu_mem_usage": True, "num_blocks_per_group": 3},
            "pinning-without-stream",
            ("low_cpu_mem_usage", "num_blocks_per_group 3"),
        ),
        (
            {"offload": "sequential", "blocks_to_swap": 20},
            "swap-with-offload",
            ("blocks_to_swap 20", "offload sequential"),
        ),
        (
            {"offload_to_disk": True, "blocks_to_swap": 20},
            "swap-with-offload",
            ("blocks_to_swap 20", "offload_to_disk True"),
        ),
        (
            GROUP | {"offload_to_disk": True, "quantization": {"transformer": "torchao-fp8"}},
            "disk-with-torchao",
            ("offload_to_disk", "torchao-fp8"),
        ),
    ],
)
def test_offloads_that_contradict_themselves(
    fields: dict[str, Any], code: str, both: tuple[str, str]
) -> None:
    error = bad_settings("flux", **fields)
    assert error.code == code
    assert all(name in str(error) for name in both)


@pytest.mark.parametrize(
    "fields",
    [
        {"use_stream": True},
        {"offload": "none", "use_stream": False},
        {"offload": "group-leaf", "low_cpu_mem_usage": True},
        {"offload": "group-block", "num_blocks_per_group": 4},
        {"offload": "group-leaf", "offload_to_disk": True, "use_stream": False},
        {"offload": "model", "blocks_to_swap": 20},
        {"blocks_to_swap": 20},
    ],
)
def test_offloads_that_go_together(fields: dict[str, Any]) -> None:
    assert settings_allowed(load("flux"), Settings(**fields)) == ()


def test_prompt_embeds_need_a_text_encoder() -> None:
    assert settings_allowed(load("sdxl-base"), Settings(prompt_embeds=True)) == ()
    assert settings_allowed(load("svd"), Settings(prompt_embeds=False)) == ()
    with pytest.raises(BadRequest, match="StableVideoDiffusionPipeline"):
        settings_allowed(load("svd"), Settings(prompt_embeds=True))


def test_forward_chunking_needs_a_denoiser_that_has_it() -> None:
    assert settings_allowed(load("sd3.5-medium"), Settings(forward_chunking=64)) == ()
    with pytest.raises(BadRequest, match="FluxTransformer2DModel.*SD3Transformer2DModel"):
        settings_allowed(load("flux.1-dev"), Settings(forward_chunking=64))


def test_the_classes_with_forward_chunking_are_those_of_diffusers() -> None:
    diffusers = pytest.importorskip("diffusers")
    kinds = {
        part.class_path.rpartition(".")[2]
        for model in all_models()
        for name, part in model.components.items()
        if name.startswith(("transformer", "unet", "prior")) and not part.external
    }
    for kind in kinds | CHUNKED_FORWARD:
        found = hasattr(getattr(diffusers, kind, None), "enable_forward_chunking")
        assert found == (kind in CHUNKED_FORWARD) or not hasattr(diffusers, kind), kind


def test_compile_is_said_to_be_counted_as_eager() -> None:
    (note,) = settings_allowed(load("sdxl-base"), Settings(compile=True))
    assert note.code == "compile-as-eager" and "eager" in note.text
