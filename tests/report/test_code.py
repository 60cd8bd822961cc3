"""The printed code is Python, says what the settings say, and names only arguments that diffusers takes."""

from __future__ import annotations

import ast
import importlib
import inspect
import types

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cardfit.report import code
from cardfit.request import OFFLOADS, QUANTIZATIONS, ExactRequest, Settings

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
    use_stream=st.sampled_from([None, True, False]),
    num_blocks_per_group=st.sampled_from([None, 1, 4]),
    low_cpu_mem_usage=st.sampled_from([None, True]),
    offload_to_disk=st.sampled_from([None, True]),
    blocks_to_swap=st.sampled_from([None, 20]),
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


def test_a_vae_goes_by_leaves_before_the_rest_goes_by_blocks():
    """The other way round the pipeline would first put the VAE on the card."""
    source = text(Settings(offload="group-block"))
    vae, whole = source.index("pipe.vae.enable_group_off"), source.index("pipe.enable_group_off")
    assert vae < whole
    assert 'offload_type="leaf_level"' in source[vae:whole]
    assert 'exclude_modules=["vae"]' in source[whole:]
    assert "exclude_modules" not in text(Settings(offload="group-leaf"))


def test_every_model_casts_by_method_or_by_hook_as_its_class_allows():
    pytest.importorskip("diffusers")
    from cardfit.library.load import all_models

    kinds = set()
    for model in all_models():
        recipe = code.Recipe.of(model)
        for name, path in recipe.classes.items():
            module, _, kind = path.rpartition(".")
            if path in kinds or module.partition(".")[0] not in ("diffusers", "transformers"):
                continue
            kinds.add(path)
            real = getattr(importlib.import_module(module), kind)
            source = text(Settings(quantization={name: "fp8-layerwise"}), recipe)
            by_method = f"pipe.{name}.enable_layerwise_casting(" in source
            assert by_method == hasattr(real, "enable_layerwise_casting"), path
            imported = "from diffusers.hooks import apply_layerwise_casting" in source
            assert imported == (not by_method), path
    assert len(kinds) > 40


@pytest.fixture
def tiny(monkeypatch):
    """A real PixArt pipeline of a few kilobytes and, in order, which weights diffusers' own hooks send where."""
    torch, diffusers = pytest.importorskip("torch"), pytest.importorskip("diffusers")
    from diffusers.hooks import group_offloading
    from transformers import T5Config, T5EncoderModel

    torch.manual_seed(0)
    denoiser = diffusers.PixArtTransformer2DModel(
        sample_size=4,
        num_layers=2,
        patch_size=2,
        attention_head_dim=4,
        num_attention_heads=2,
        in_channels=4,
        out_channels=8,
        cross_attention_dim=8,
        caption_channels=16,
        use_additional_conditions=False,
    )
    sizes = {"vocab_size": 32, "d_model": 16, "d_kv": 8, "d_ff": 32, "num_layers": 2}
    encoder = T5EncoderModel(T5Config(**sizes, num_heads=2, feed_forward_proj="gated-gelu"))
    vae = diffusers.AutoencoderKL(block_out_channels=(8,), norm_num_groups=2, sample_size=8)
    pipe = diffusers.PixArtAlphaPipeline(
        tokenizer=None,
        text_encoder=encoder.to(torch.bfloat16),
        vae=vae.to(torch.bfloat16),
        transformer=denoiser.to(torch.bfloat16),
        scheduler=diffusers.DDIMScheduler(),
    )
    loaded = types.SimpleNamespace(from_pretrained=lambda *_, **__: pipe)
    monkeypatch.setattr(diffusers, "PixArtAlphaPipeline", loaded)
    groups = []

    class Group(group_offloading.ModuleGroup):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            groups.append(self)

        def _init_cpu_param_dict(self):
            return {}

        def onload_(self): ...

        def offload_(self): ...

    backend = types.SimpleNamespace(Stream=lambda: types.SimpleNamespace(synchronize=lambda: None))
    monkeypatch.setattr(group_offloading, "ModuleGroup", Group)
    monkeypatch.setattr(group_offloading, "TorchDeviceBackend", lambda _: backend)
    return types.SimpleNamespace(pipe=pipe, groups=groups)


PIXART = code.Recipe(
    pipeline="PixArtAlphaPipeline",
    repo_id="tiny",
    dtypes={"transformer": "bfloat16", "text_encoder": "bfloat16", "vae": "bfloat16"},
    classes={
        "transformer": "diffusers.PixArtTransformer2DModel",
        "text_encoder": "transformers.T5EncoderModel",
        "vae": "diffusers.AutoencoderKL",
    },
)


def up_to_the_call(knobs: Settings) -> None:
    """Execute the printed lines before ``result = pipe(``."""
    source = text(knobs, PIXART, task="text-to-image", num_frames=1, fps=None)
    exec(compile(source.partition("result = pipe(")[0], "printed", "exec"), {})


def test_the_offload_lines_hook_a_real_pipeline(tiny):
    """Every weight of the VAE is in a group of one leaf, each block of the denoiser in one group of its own."""
    up_to_the_call(Settings(offload="group-block"))
    held = [
        {id(p) for p in (*g.parameters, *(p for m in g.modules for p in m.parameters()))}
        for g in tiny.groups
    ]
    blocks = tiny.pipe.transformer.transformer_blocks
    assert all({id(p) for p in block.parameters()} in held for block in blocks)
    for leaf in tiny.pipe.vae.modules():
        own = {id(p) for p in leaf.parameters(recurse=False)}
        assert not own or own in held
    assert {g.stream is not None for g in tiny.groups} == {True, False}  # unmatched ones have none
    assert {p.device.type for p in tiny.pipe.vae.parameters()} == {"cpu"}


def test_the_casting_lines_leave_a_real_text_encoder_able_to_run(tiny):
    """T5 feeds its ``wo`` in the dtype that layer is stored in: cast as well, it would fail."""
    import torch

    schemes = {"transformer": "fp8-layerwise", "text_encoder": "fp8-layerwise"}
    tiny.pipe.to = lambda device: tiny.pipe  # there is no card
    up_to_the_call(Settings(offload="none", quantization=schemes))
    encoder, denoiser = tiny.pipe.text_encoder, tiny.pipe.transformer
    dense = encoder.encoder.block[0].layer[1].DenseReluDense
    assert (dense.wi_0.weight.dtype, dense.wo.weight.dtype) == (
        torch.float8_e4m3fn,
        torch.bfloat16,
    )
    first = denoiser.transformer_blocks[0].attn1.to_q
    assert first.weight.dtype == torch.float8_e4m3fn
    with torch.no_grad():
        out = encoder(torch.arange(8)[None])[0]
    assert out.dtype == torch.bfloat16 and bool(out.isfinite().all())


@pytest.mark.parametrize(
    ("knobs", "streamed", "low"),
    [
        ({}, True, False),
        ({"use_stream": False}, False, False),
        ({"use_stream": True, "low_cpu_mem_usage": True}, True, True),
    ],
)
@pytest.mark.parametrize("offload", ["group-leaf", "group-block"])
def test_the_knobs_of_a_group_reach_its_hooks(tiny, offload, knobs, streamed, low):
    up_to_the_call(Settings(offload=offload, **knobs))
    assert any(g.stream is not None for g in tiny.groups) == streamed
    # groups of several tensors that belong to no block are never given the option
    assert any(g.low_cpu_mem_usage for g in tiny.groups) == low
    assert not any(g.record_stream for g in tiny.groups)


def test_several_blocks_make_one_group_without_a_stream(tiny):
    up_to_the_call(Settings(offload="group-block", num_blocks_per_group=2))
    blocks = tiny.pipe.transformer.transformer_blocks
    assert [len(g.modules) for g in tiny.groups if g.modules and g.modules[0] is blocks[0]] == [2]
    assert all(g.stream is None for g in tiny.groups)


@pytest.mark.parametrize("offload", ["group-leaf", "group-block"])
def test_every_component_has_a_folder_of_its_own_on_disk(tiny, offload, tmp_path, monkeypatch):
    """Two layers of one path in two components would share a file."""
    monkeypatch.chdir(tmp_path)
    up_to_the_call(Settings(offload=offload, offload_to_disk=True))
    owner = {}
    for name in ("text_encoder", "vae", "transformer"):
        for tensor in getattr(tiny.pipe, name).parameters():
            owner[id(tensor)] = name
    files = {}
    for group in tiny.groups:
        for tensor in group.tensor_to_key:
            files.setdefault(group.offload_to_disk_path, set()).add(owner.get(id(tensor)))
    assert {folder: names - {None} for folder, names in files.items()} == {
        f"offloaded/{name}": {name} for name in ("text_encoder", "vae", "transformer")
    }


def test_swapped_blocks_come_in_for_their_own_forward(tiny, monkeypatch):
    """The printed hooks on a real denoiser, with a stand-in for the card that notes what is sent there."""
    import torch

    moves = []
    plain = torch.Tensor.to

    def to(self, *args, **kwargs):
        if args and args[0] in ("cuda", "cpu"):
            moves.append(args[0])
            return self
        return plain(self, *args, **kwargs)

    sent = []
    tiny.pipe.to = lambda device: sent.append(device)
    monkeypatch.setattr(torch.Tensor, "to", to)
    up_to_the_call(Settings(offload="none", blocks_to_swap=1))
    assert sent == ["cuda"]
    denoiser = tiny.pipe.transformer
    last = denoiser.transformer_blocks[-1]
    before = {id(p) for p in last.parameters()}
    denoiser.to(torch.float32)  # the whole model moves, the swapped block does not
    assert {p.dtype for p in last.parameters()} == {torch.bfloat16}
    assert {id(p) for p in last.parameters()} == before
    assert {p.dtype for p in denoiser.transformer_blocks[0].parameters()} == {torch.float32}
    for hook in last._forward_pre_hooks.values():
        assert hook(last, ()) is None
    tensors = len([*last.parameters(), *last.buffers()])
    assert moves == ["cuda"] * tensors
    for hook in last._forward_hooks.values():
        assert hook(last, (), None) is None
    assert moves == ["cuda"] * tensors + ["cpu"] * tensors
    assert not denoiser.transformer_blocks[0]._forward_pre_hooks


def test_old_versions_that_cannot_move_eight_bit_weights_are_named():
    moved = text(Settings(offload="model", quantization={"transformer": "bnb-int8"}))
    assert "# bitsandbytes 0.48 and transformers 4.58 or later" in moved
    assert "0.48" not in text(Settings(offload="none", quantization={"transformer": "bnb-int8"}))
    assert "0.48" not in text(Settings(offload="model", quantization={"transformer": "bnb-nf4"}))
