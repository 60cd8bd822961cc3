"""The printed code is Python, says what the settings say, and names only arguments that diffusers takes."""

from __future__ import annotations

import ast
import inspect
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.library import load
from cardfit.library.rules import resolve
from cardfit.report import code
from cardfit.request import OFFLOADS, QUANTIZATIONS, ExactRequest, Request, Settings

WAN = code.Recipe(
    pipeline="WanPipeline",
    repo_id="Wan-AI/Wan2.1-T2V-14B-Diffusers",
    dtypes={"transformer": "bfloat16", "text_encoder": "bfloat16", "vae": "float32"},
    classes={
        "transformer": "diffusers.WanTransformer3DModel",
        "text_encoder": "transformers.UMT5EncoderModel",
        "vae": "diffusers.AutoencoderKLWan",
    },
    video=True,
)
FLUX = code.Recipe(
    pipeline="FluxPipeline",
    repo_id="black-forest-labs/FLUX.1-dev",
    dtypes={"transformer": "bfloat16", "vae": "bfloat16"},
    classes={"transformer": "diffusers.FluxTransformer2DModel", "vae": "diffusers.AutoencoderKL"},
)


def request(**changes) -> ExactRequest:
    fields = {
        "model": "m",
        "task": "text-to-video",
        "width": 1280,
        "height": 720,
        "num_frames": 81,
        "fps": 16,
        "num_inference_steps": 50,
        "guidance_scale": 5.0,
        "prompt_tokens": 512,
        "seed": 7,
    }
    return ExactRequest(**(fields | changes))


def text(knobs: Settings, recipe=WAN, **changes) -> str:
    return "\n".join(code.body(request(**changes), knobs, recipe))


ANY_SETTINGS = st.builds(
    Settings,
    dtype=st.sampled_from([{}, {"*": "float16"}, {"vae": "float32"}]),
    quantization=st.dictionaries(
        st.sampled_from(["transformer", "text_encoder"]), st.sampled_from(QUANTIZATIONS)
    ),
    offload=st.sampled_from([None, *OFFLOADS]),
    vae_tiling=st.sampled_from([None, True, False]),
    vae_tile=st.sampled_from([None, 256]),
    vae_slicing=st.booleans(),
    decode_chunk_size=st.sampled_from([None, 4]),
    attention=st.sampled_from(["sdpa", "math"]),
)


@settings(max_examples=60)
@given(knobs=ANY_SETTINGS, recipe=st.sampled_from([WAN, FLUX]))
def test_any_settings_give_valid_python_no_wider_than_a_screen(knobs, recipe):
    source = text(knobs, recipe)
    ast.parse(source)
    assert all(len(line) <= 100 for line in source.splitlines())


def test_dtypes_that_differ_stand_by_component():
    assert '"default": torch.bfloat16, "vae": torch.float32' in text(Settings())
    assert "dtype=torch.float16," in text(Settings(dtype={"*": "float16"}))


@pytest.mark.parametrize(
    ("offload", "line"),
    [
        ("none", 'pipe.to("cuda")'),
        ("model", "pipe.enable_model_cpu_offload()"),
        ("sequential", "pipe.enable_sequential_cpu_offload()"),
        ("group-leaf", 'offload_type="leaf_level"'),
        ("group-block", 'offload_type="block_level"'),
    ],
)
def test_every_offload_has_its_call(offload, line):
    source = text(Settings(offload=offload))
    assert line in source
    assert ('pipe.to("cuda")' in source) == (offload == "none")


def test_tiles_are_arguments_where_the_vae_takes_them_and_attributes_elsewhere():
    knobs = Settings(vae_tiling=True, vae_tile=256, vae_overlap=64)
    assert "tile_sample_stride_height=192" in text(knobs)
    assert "pipe.vae.tile_latent_min_size = 32" in text(knobs, FLUX)
    assert "pipe.vae.enable_tiling()" in text(Settings(vae_tiling=True))


def test_quantization_is_configured_per_component_and_library():
    source = text(Settings(quantization={"transformer": "bnb-nf4", "text_encoder": "bnb-int8"}))
    assert (
        '"transformer": DiffusersBitsAndBytesConfig(' in source and "load_in_4bit=True," in source
    )
    assert '"text_encoder": TransformersBitsAndBytesConfig(' in source
    assert "quantization_config=quantization" in source
    cast = text(Settings(quantization={"transformer": "fp8-layerwise"}))
    assert (
        "pipe.transformer.enable_layerwise_casting(" in cast and "quantization_config" not in cast
    )


def test_the_call_makes_what_was_asked_and_keeps_it():
    source = text(Settings(), batch=2)
    for part in (
        "num_frames=81",
        "height=720",
        "num_videos_per_prompt=2",
        "manual_seed(7)",
        "fps=16",
    ):
        assert part in source
    image = text(Settings(), FLUX, task="image-editing", num_frames=1, fps=None)
    assert "num_frames" not in image and "load_image(" in image and "result.images" in image


def test_the_lines_run_against_a_stand_in(monkeypatch):
    """Executed with recording stand-ins: every name that is used is imported or made."""
    from unittest.mock import MagicMock

    names = ("torch", "diffusers", "diffusers.utils", "diffusers.quantizers", "transformers")
    fakes = {name: MagicMock(spec=None) for name in names}
    pipe = fakes["diffusers"].WanPipeline.from_pretrained.return_value
    pipe.return_value = types.SimpleNamespace(frames=[["frame"]])
    for name, fake in fakes.items():
        monkeypatch.setitem(__import__("sys").modules, name, fake)
    knobs = Settings(
        offload="group-leaf",
        vae_tiling=True,
        vae_tile=256,
        quantization={"transformer": "bnb-int8"},
        attention="math",
    )
    exec(compile(text(knobs), "printed", "exec"), {})
    pipe.enable_group_offload.assert_called_once()
    pipe.vae.enable_tiling.assert_called_once()
    pipe.assert_called_once()
    fakes["diffusers.utils"].export_to_video.assert_called_once_with(
        ["frame"], "output-0.mp4", fps=16
    )


def test_every_model_of_the_library_gets_a_call_that_diffusers_takes():
    diffusers = pytest.importorskip("diffusers")
    from cardfit.library.load import all_models

    wrong = []
    for model in all_models():
        if not model.pipeline_in_diffusers:
            continue
        recipe = code.Recipe.of(model)
        tree = ast.parse(text(Settings(), recipe, task=model.tasks[0]))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        call = next(c for c in calls if isinstance(c.func, ast.Name) and c.func.id == "pipe")
        takes = inspect.signature(getattr(diffusers, model.pipeline).__call__).parameters
        wrong += [(model.id, each.arg) for each in call.keywords if each.arg not in takes]
    assert wrong == []


def test_every_vae_takes_the_tile_arguments_that_are_printed():
    diffusers = pytest.importorskip("diffusers")
    from cardfit.library.load import all_models

    for model in all_models():
        recipe = code.Recipe.of(model)
        kind = recipe.classes[recipe.vae].rpartition(".")[2]
        if not model.vae.tiling or not hasattr(diffusers, kind):
            continue
        takes = set(inspect.signature(getattr(diffusers, kind).enable_tiling).parameters)
        tree = ast.parse(text(Settings(vae_tiling=True, vae_tile=256), recipe))
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        tiling = [c for c in calls if getattr(c.func, "attr", "") == "enable_tiling"]
        assert {each.arg for each in tiling[0].keywords} <= takes, model.id
        assert bool(tiling[0].keywords) == ("tile_sample_min_height" in takes), model.id


def test_a_vae_goes_by_leaves_when_the_rest_goes_by_blocks():
    recipe = code.Recipe.of(load("flux.1-dev"))
    request, _ = resolve(load("flux.1-dev"), Request(model="flux.1-dev"))
    text = "\n".join(code.body(request, Settings(offload="group-block"), recipe))
    whole, vae = text.index("pipe.enable_group_offload("), text.index("pipe.vae.enable_group")
    assert whole < vae
    assert 'exclude_modules=["vae"]' in text[whole:vae]
    assert 'offload_type="leaf_level"' in text[vae:]


def test_layerwise_casting_of_a_text_encoder_is_a_hook_function():
    recipe = code.Recipe.of(load("flux.1-dev"))
    request, _ = resolve(load("flux.1-dev"), Request(model="flux.1-dev"))
    schemes = {"transformer": "fp8-layerwise", "text_encoder_2": "fp8-layerwise"}
    text = "\n".join(code.body(request, Settings(quantization=schemes), recipe))
    assert "pipe.transformer.enable_layerwise_casting(" in text
    assert "apply_layerwise_casting(\n    pipe.text_encoder_2," in text
