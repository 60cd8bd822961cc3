"""What a script says, one way of saying it at a time."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

from cardfit.script.known import known, signatures
from cardfit.script.planning import as_written
from cardfit.script.reader import read_text

FLUX = """import torch
from diffusers import FluxPipeline
pipe = FluxPipeline.from_pretrained("black-forest-labs/FLUX.1-dev", torch_dtype=torch.bfloat16)
"""
CALL = 'image = pipe("a cat", width=1024, height=768).images[0]\n'
WAN = """import torch
from diffusers import WanPipeline
pipe = WanPipeline.from_pretrained("Wan-AI/Wan2.1-T2V-1.3B-Diffusers", torch_dtype=torch.bfloat16)
"""


def one(text, answers=None):
    reading = read_text(text, answers)
    (found,) = reading.requests
    return found


def said(text):
    return one(text).settings.model_dump(exclude_defaults=True, exclude={"dtype"})


@pytest.mark.parametrize(
    ("lines", "settings"),
    [
        ('pipe.to("cuda")', {"offload": "none"}),
        ("pipe.enable_model_cpu_offload()", {"offload": "model"}),
        ("pipe.enable_sequential_cpu_offload(gpu_id=1)", {"offload": "sequential"}),
        (
            'pipe.enable_group_offload(torch.device("cuda"), torch.device("cpu"), "leaf_level", use_stream=True)',
            {"offload": "group-leaf", "use_stream": True},
        ),
        (
            'pipe.enable_group_offload(onload_device="cuda", num_blocks_per_group=4)',
            {"offload": "group-block", "use_stream": False, "num_blocks_per_group": 4},
        ),
        (
            'pipe.enable_group_offload("cuda", offload_type="leaf_level", use_stream=True, low_cpu_mem_usage=True, '
            'offload_to_disk_path="x")',
            {
                "offload": "group-leaf",
                "use_stream": True,
                "low_cpu_mem_usage": True,
                "offload_to_disk": True,
            },
        ),
        (
            "pipe.vae.enable_tiling()\npipe.vae.enable_slicing()",
            {"vae_tiling": True, "vae_slicing": True},
        ),
        ("pipe.enable_vae_tiling()\npipe.disable_vae_tiling()", {"vae_tiling": False}),
        (
            "pipe.vae.use_tiling = True\npipe.vae.tile_sample_min_size = 512\npipe.vae.tile_overlap_factor = 0.25",
            {"vae_tiling": True, "vae_tile": 512, "vae_overlap": 128},
        ),
        (
            "pipe.vae.enable_tiling(tile_sample_min_height=256, tile_sample_min_width=256, "
            "tile_sample_stride_height=192, tile_sample_stride_width=192)",
            {"vae_tiling": True, "vae_tile": 256, "vae_overlap": 64},
        ),
        ('pipe.transformer.set_attention_backend("flash")', {"attention": "flash"}),
        ("torch.backends.cuda.enable_flash_sdp(False)", {"attention": "efficient"}),
        (
            "torch.backends.cuda.enable_flash_sdp(False)\ntorch.backends.cuda.enable_mem_efficient_sdp(False)",
            {"attention": "math"},
        ),
        ("pipe.transformer = torch.compile(pipe.transformer)", {"compile": True}),
        ("pipe.transformer.compile_repeated_blocks(fullgraph=True)", {"compile": True}),
        ("pipe.transformer.fuse_qkv_projections()", {"fuse_qkv": True}),
        (
            "pipe.transformer.enable_layerwise_casting(torch.float8_e4m3fn, compute_dtype=torch.bfloat16)",
            {"quantization": {"transformer": "fp8-layerwise"}},
        ),
        (
            "from torchao.quantization import quantize_, int8_weight_only\n"
            "quantize_(pipe.transformer, int8_weight_only())",
            {"quantization": {"transformer": "torchao-int8"}},
        ),
        (
            "from optimum.quanto import freeze, qfloat8, quantize\n"
            "quantize(pipe.transformer, weights=qfloat8)\nfreeze(pipe.transformer)",
            {"quantization": {"transformer": "quanto-fp8"}},
        ),
        (
            'import os\nos.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"',
            {"alloc_conf": "expandable_segments:True"},
        ),
    ],
)
def test_settings(lines, settings):
    assert said(FLUX + lines + "\n" + CALL) == {"offload": "none", **settings}


LOADS = """import torch
from diffusers import (BitsAndBytesConfig, FluxPipeline, FluxTransformer2DModel, GGUFQuantizationConfig, QuantoConfig,
    TorchAoConfig)
from diffusers.quantizers import PipelineQuantizationConfig
from torchao.quantization import Float8WeightOnlyConfig
repo = "black-forest-labs/FLUX.1-dev"
"""


@pytest.mark.parametrize(
    ("config", "scheme"),
    [
        ("BitsAndBytesConfig(load_in_8bit=True)", "bnb-int8"),
        ('BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4")', "bnb-nf4"),
        ('TorchAoConfig("int8wo")', "torchao-int8"),
        ("TorchAoConfig(Float8WeightOnlyConfig())", "torchao-fp8"),
        ('QuantoConfig(weights_dtype="float8")', "quanto-fp8"),
    ],
)
def test_quantization_configs(config, scheme):
    text = f"""{LOADS}
part = FluxTransformer2DModel.from_pretrained(
    repo, subfolder="transformer", quantization_config={config}, torch_dtype=torch.bfloat16)
pipe = FluxPipeline.from_pretrained(repo, transformer=part, torch_dtype=torch.bfloat16)
{CALL}"""
    assert one(text).settings.quantization == {"transformer": scheme}


def test_a_backend_for_named_components():
    text = f"""{LOADS}
config = PipelineQuantizationConfig(quant_backend="bitsandbytes_4bit", quant_kwargs={{"load_in_4bit": True}},
    components_to_quantize=["transformer", "text_encoder_2"])
pipe = FluxPipeline.from_pretrained(repo, quantization_config=config, torch_dtype=torch.bfloat16)
{CALL}"""
    assert one(text).settings.quantization == dict.fromkeys(
        ("transformer", "text_encoder_2"), "bnb-nf4"
    )


def test_a_gguf_file():
    text = f"""{LOADS}
part = FluxTransformer2DModel.from_single_file("https://x.org/flux1-dev-Q4_K_S.gguf",
    quantization_config=GGUFQuantizationConfig(compute_dtype=torch.bfloat16), torch_dtype=torch.bfloat16)
pipe = FluxPipeline.from_pretrained(repo, transformer=part, torch_dtype=torch.bfloat16)
{CALL}"""
    assert one(text).settings.quantization == {"transformer": "gguf-q4_k"}


@pytest.mark.parametrize(
    ("load", "dtypes"),
    [
        ("", {"*": "float32"}),
        (", dtype=torch.half", {"*": "float16"}),
        (', torch_dtype="bfloat16"', {"*": "bfloat16"}),
        (
            ', dtype={"default": torch.bfloat16, "vae": torch.float32}',
            {"*": "bfloat16", "vae": "float32"},
        ),
    ],
)
def test_dtypes(load, dtypes):
    text = "import torch\nfrom diffusers import FluxPipeline\n"
    text += f"pipe = FluxPipeline.from_pretrained('flux.1-dev'{load})\n"
    assert one(text + CALL).settings.dtype == dtypes
    cast = one(text + "pipe.to('cuda', torch.float16)\npipe.vae.float()\n" + CALL)
    assert cast.settings.dtype == {"*": "float16", "vae": "float32"}


def test_the_knobs_of_an_early_component_come_with_it():
    text = f"""import torch
from diffusers import AutoencoderKLWan, WanPipeline
vae = AutoencoderKLWan.from_pretrained("Wan-AI/Wan2.1-T2V-14B-Diffusers", subfolder="vae")
vae.enable_tiling()
pipe = WanPipeline.from_pretrained("Wan-AI/Wan2.1-T2V-14B-Diffusers", vae=vae, torch_dtype=torch.bfloat16)
{CALL}"""
    found = one(text)
    assert found.settings.vae_tiling is True
    assert found.settings.dtype == {"*": "bfloat16", "vae": "float32"}


def test_each_call_has_the_settings_of_its_time():
    reading = read_text(f"{FLUX}{CALL}pipe.enable_vae_tiling()\n{CALL}")
    assert [each.settings.vae_tiling for each in reading.requests] == [None, True]


def test_a_loop_counts_its_calls_and_a_long_one_too():
    text = (
        FLUX
        + "for seed in range({n}):\n    image = pipe('x', generator=torch.Generator().manual_seed(seed))\n"
    )
    assert one(text.format(n=5)).calls == 5
    assert one(text.format(n=5000)).calls == 5000
    open_ended = FLUX + "for line in open('prompts.txt'):\n    image = pipe(line)\n"
    assert one(open_ended).calls is None


def test_batches():
    text = FLUX + "images = pipe(['a', 'b', 'c'], num_images_per_prompt=2).images\n"
    found = one(text)
    assert found.batch == 6
    assert sum(origin.field == "batch" for origin in found.origins) == 1


def test_branches_functions_classes_and_dictionaries():
    text = f"""
from dataclasses import dataclass
import math
{FLUX}
@dataclass
class Size:
    width: int = 1024
    height: int = 512

class Maker:
    def __init__(self, pipe, steps=20):
        self.pipe, self.steps = pipe, steps

    def make(self, prompt, **more):
        options = {{"num_inference_steps": self.steps, **more}}
        if options.get("turbo", False):
            options["num_inference_steps"] = 4
        return self.pipe(prompt, **options).images[0]

size = Size(height=768)
device = "cuda" if torch.cuda.is_available() else "cpu"
pipe = pipe.to(device)
side = lambda n: math.ceil(n / 16) * 16
Maker(pipe, steps=8 * 3).make("x", width=side(size.width - 3), height=size.height)
"""
    found = one(text)
    assert (found.width, found.height, found.num_inference_steps) == (1024, 768, 24)
    assert (found.device, found.settings.offload) == ("cuda", "none")


def test_arguments_without_a_default_are_asked_under_their_name():
    text = f"""import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--side", type=int, required=True)
parser.add_argument("--steps", type=int, default=30)
parser.add_argument("--tile", action="store_true")
args = parser.parse_args()
{FLUX}
if args.tile:
    pipe.enable_vae_tiling()
image = pipe("x", width=args.side // 16 * 16, height=512, num_inference_steps=args.steps)
"""
    reading = read_text(text)
    assert [(each.input, each.line) for each in reading.missing] == [("side", 3)]
    assert (reading.requests[0].width, reading.requests[0].height) == (None, 512)
    found = one(text, {"side": 1000, "tile": True, "steps": 12})
    assert (found.width, found.num_inference_steps, found.settings.vae_tiling) == (992, 12, True)


def test_a_branch_that_nobody_can_choose_is_asked():
    text = f"import os\n{FLUX}if os.stat('big').st_size > 5:\n    pipe.enable_model_cpu_offload()\n{CALL}"
    (question,) = read_text(text).missing
    assert (question.input, question.line) == ("line5", 5)
    assert "enable_model_cpu_offload" in question.why
    assert one(text, {"line5": True}).settings.offload == "model"
    assert one(text, {"line5": False}).settings.offload == "none"


def test_an_input_picture_decides_the_size():
    text = """import torch
from diffusers import AutoPipelineForImage2Image
from diffusers.utils import load_image
pipe = AutoPipelineForImage2Image.from_pretrained("stabilityai/stable-diffusion-xl-base-1.0", torch_dtype=torch.float16)
pipe.to("cuda")
picture = load_image("x.png").convert("RGB"){resize}
image = pipe("x", image=picture, strength=0.5, num_inference_steps=40).images[0]
"""
    reading = read_text(text.format(resize=""))
    assert {each.input for each in reading.missing} == {"width", "height"}
    assert all("input picture" in each.why for each in reading.missing)
    found = one(text.format(resize=".resize((768, 1024))"))
    assert (found.width, found.height, found.task) == (768, 1024, "image-to-image")
    assert (found.pipeline, found.effective_steps) == ("StableDiffusionXLImg2ImgPipeline", 20)


def test_the_output_of_one_pipeline_goes_into_another():
    text = """import torch
from diffusers import StableDiffusionXLImg2ImgPipeline, StableDiffusionXLPipeline
base = StableDiffusionXLPipeline.from_pretrained("sdxl-base", torch_dtype=torch.float16).to("cuda")
base.enable_vae_tiling()
second = StableDiffusionXLImg2ImgPipeline.from_pipe(base)
picture = base("x", width=1152, height=896).images[0]
picture = second("x", image=picture, strength=0.25, num_inference_steps=40).images[0]
"""
    first, second = read_text(text).requests
    assert (second.width, second.height) == (1152, 896)
    assert second.settings == first.settings
    assert second.settings.dtype == {"*": "float16"}


def test_adapters_are_listed_and_counted_once_their_rank_is_said():
    text = f"""{FLUX}
pipe.load_lora_weights("someone/style", weight_name="style.safetensors", adapter_name="style")
pipe.set_adapters(["style"], adapter_weights=[0.8])
pipe.fuse_lora(lora_scale=0.5)
{CALL}"""
    found = one(text)
    (lora,) = found.loras
    assert (lora.source, lora.name, lora.scale, lora.fused) == (
        "someone/style/style.safetensors",
        "style",
        0.5,
        True,
    )
    assert "lora_rank" in found.not_modelled[0].text
    assert one(text, {"lora_rank": 16}).lora_rank == 16


@pytest.mark.parametrize(
    "line",
    [
        "pipe.enable_attention_slicing()",
        "pipe.load_ip_adapter('h94/IP-Adapter')",
        "pipe.transformer.enable_cache(config)",
        "pipe.some_new_switch()",
        "pipe.transformer.some_new_switch(3)",
        "pipe.some_new_field = 3",
    ],
)
def test_what_no_plan_follows_is_listed_with_its_line(line):
    name = line.partition("(")[0].rpartition(".")[2].partition(" ")[0]
    texts = [note.text for note in one(f"{FLUX}{line}\n{CALL}").not_modelled]
    assert [text for text in texts if text.startswith("line 4: ") and name in text]


def test_controlnets_and_unknown_arguments_are_listed():
    text = f"""{FLUX}
from diffusers import FluxControlNetModel, FluxControlNetPipeline
net = FluxControlNetModel.from_pretrained("someone/canny", torch_dtype=torch.bfloat16)
pipe = FluxControlNetPipeline.from_pretrained("flux.1-dev", controlnet=net, torch_dtype=torch.bfloat16)
image = pipe("x", control_image=image, width=1024, height=1024, brand_new=3)
"""
    texts = " | ".join(note.text for note in one(text).not_modelled)
    assert "FluxControlNetModel" in texts and "brand_new=3" in texts and "control_image" in texts
    assert "FluxControlNetPipeline is planned as FluxPipeline" in texts


def test_guidance_by_the_name_of_the_pipeline():
    text = """from diffusers import QwenImagePipeline
pipe = QwenImagePipeline.from_pretrained("Qwen/Qwen-Image", torch_dtype="bfloat16").to("cuda")
image = pipe("x", {more}true_cfg_scale=4.0, width=1328, height=1328).images[0]
"""
    assert one(text.format(more="negative_prompt=' ', ")).guidance_scale == 4.0
    off = one(text.format(more=""))
    assert (off.guidance_scale, off.notes[0].code) == (1.0, "script-no-negative")


def test_the_rate_of_the_file_is_playback():
    text = WAN + "from diffusers.utils import export_to_video\nfps = 24\n"
    text += (
        "frames = pipe('x', num_frames=49).frames[0]\nexport_to_video(frames, 'x.mp4', fps=fps)\n"
    )
    found = one(text)
    assert (found.fps, found.num_frames) == (24, 49)
    (origin,) = [each for each in found.origins if each.field == "fps"]
    assert origin.lines == (5, 7)


def test_as_written_leaves_nothing_to_choose():
    settings = as_written(one(FLUX + CALL))
    assert (settings.offload, settings.vae_tiling, settings.vae_slicing) == ("none", False, False)
    assert settings.quantization == {"transformer": "none"}


def test_no_call_is_said():
    reading = read_text("import os\nprint(os.name)\n")
    assert reading.requests == () and reading.notes[0].code == "script-no-call"


def test_the_data_is_about_things_that_are_there():
    from cardfit.library.load import load
    from cardfit.request import Request, Settings
    from cardfit.script.result import ScriptRequest

    data = known()
    assert all(load(name) for name in data.kin.values())
    fields = {*Settings.model_fields, "fps"}
    for effect in data.effects.values():
        assert all(name in fields or name.startswith("tile_") for name in effect.sets)
    assert {"width", "height", "num_frames", "batch"} <= set(data.call.values())
    assert set(data.call.values()) & set(Request.model_fields) <= set(ScriptRequest.model_fields)


def test_signatures_are_those_of_the_installed_diffusers():
    path = Path(__file__).parents[2] / "scripts" / "call_signatures.py"
    spec = importlib.util.spec_from_file_location("call_signatures", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    assert script.TARGET.read_text(encoding="utf-8") == script.text()
    assert signatures()["WanPipeline"]["defaults"]["num_frames"] == 81
