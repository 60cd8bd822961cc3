"""The stage in which a run ended, from the frames of its traceback, else from bars and remarks of its log.

In: a `Reading`. Out: a `Where`: the stage of the closed list, or None, with the line that says so. The tables name
files and functions of diffusers, transformers, accelerate, ComfyUI and its wrappers, and of the official scripts.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from cardfit.autopsy.read import Frame, Reading
from cardfit.autopsy.result import Program, StageName


class _Rule(NamedTuple):
    """Where path, function and code line of a frame match, the run is in the stage; an empty pattern always does."""

    stage: StageName
    path: str = ""
    function: str = ""
    code: str = ""


_VAE = (
    r"autoencoder|/vae|vae\d*(?:_\w+)?\.py|_vae\.py|/vae2_|comfy/ldm/(?:wan|cosmos"
    r"|hunyuan\w*|lightricks|genmo)"
    r"/(?:vae|cosmos_tokenizer)|taesd|model/vae|causal_video_autoencoder"
    r"|diffusionmodules/model\.py"
)
_TEXT = (
    r"transformers/models/(?:t5|umt5|llama|llava|gemma|qwen|mistral|chatglm|phi)"
    r"|text_encoder|/t5\.py|/umt5|clip_model\.py"
    r"|sd1_clip|sdxl_clip|comfy/text_encoders|modules/t5|conditioner\.py"
    r"|sd_hijack_clip|embeddings_connector"
)
_DENOISER = (
    r"diffusers/models/(?:transformers|unets)/|transformer_\w+\.py|unet_\w+\.py"
    r"|comfy/(?:k_diffusion|samplers|model_base)"
    r"|comfy/sample\.py|k_diffusion|diffusionmodules/openaimodel"
    r"|wan/modules/model\.py|wanvideo/modules/model|flux/model\.py"
    r"|ldm/[\w/]+/(?:model|dit|mmdit)\w*\.py|hyvideo/modules/models\.py"
    r"|hunyuan_video_packed|transformer3d\.py"
    r"|sgm/modules/diffusionmodules/sampling|sd_samplers|diffusion_model\.py"
    r"|transformers/transformer3d"
)
_NOT_MOVING = r"^(?!_?forward|to$|cuda$|wrapper$|__call__$|dequantize)"
# The rules, tried in this order on each frame, the innermost frame first.
_RULES: tuple[_Rule, ...] = (
    _Rule(
        "load",
        "",
        r"^__init__$",
        r"load_state_dict|torch\.load|\.to\(|load_file|from_pretrained|\.cuda\(",
    ),
    _Rule("decode", _VAE, r"decode|decoder"),
    _Rule("encode_condition", _VAE, r"encode|encoder"),
    _Rule("decode", r"comfy/sd\.py", r"decode"),
    _Rule("encode_condition", r"comfy/sd\.py", r"^encode(?!_from_tokens|_token)"),
    _Rule("encode_prompt", r"comfy/sd\.py", r"encode_from_tokens|encode_token"),
    _Rule("encode_condition", r"vision_|_vision|siglip|image_encoder"),
    _Rule("decode", "", "", r"\.decode\(|decode_latents\(|decode_first_stage\(|vae_decode"),
    _Rule("encode_prompt", _TEXT),
    _Rule("denoise", _DENOISER),
    _Rule(
        "decode",
        "",
        r"^(?:decode_latents|_?vae_decode|decode_first_stage|decode_tiled|tiled_decode)$",
    ),
    _Rule(
        "encode_prompt",
        "",
        r"^_?(?:encode_prompt|get_\w*prompt_embeds|_get_\w+_prompt_embeds|encode_prompts)$",
    ),
    _Rule(
        "encode_condition",
        "",
        r"^(?:_?encode_image|_?encode_vae_image|prepare_image_latents|prepare_mask_latents)$",
    ),
    _Rule(
        "encode_condition",
        "",
        "",
        r"vae\.encode\(|encode_image\(|encode_first_stage\(|image_encoder\(",
    ),
    _Rule(
        "encode_prompt",
        "",
        "",
        r"encode_prompt\(|text_encoder(?:_\d)?\(|get_learned_conditioning\(",
    ),
    _Rule(
        "load",
        r"transformers/(?:modeling_utils|core_model_loading)|models/modeling_utils"
        r"|model_loading_utils|pipeline_loading_utils|single_file",
        _NOT_MOVING,
    ),
    _Rule("load", r"comfy/utils\.py", r"load_torch_file"),
    _Rule("load", r"comfy/sd\.py", r"^load_"),
    _Rule(
        "load",
        "",
        r"^_?(?:from_pretrained|from_single_file|load_state_dict|load_checkpoint\w*"
        r"|load_model\w*|load_sub_model|load_file|load_weights|load_transformer"
        r"|load_diffusion_model\w*|loadmodel|load_unet|safe_open"
        r"|load_sharded_checkpoint)$",
    ),
    _Rule("load", r"pipeline_utils\.py", r"^to$"),
    _Rule("load", r"accelerate/(?:utils/modeling|big_modeling)\.py"),
    _Rule(
        "export",
        "",
        r"^(?:export_to_\w+|save_video|cache_video|save_videos_grid|write_video|mimwrite|mimsave)$",
    ),
    _Rule("export", r"imageio|/av/|moviepy|VideoCombine|videohelpersuite", ""),
    _Rule("ingest", "", r"^(?:load_video|load_image|read_video|imread|get_frames)$"),
    _Rule("ingest", r"decord|/torchcodec"),
    _Rule("post", "", r"^(?:postprocess_video|postprocess|numpy_to_pil|tensor2vid|pt_to_numpy)$"),
    _Rule("post", r"spandrel|realesrgan|esrgan|/rife|upscale"),
    _Rule(
        "denoise",
        "",
        r"^(?:common_ksampler|sample_custom|inner_sample|ksampler|sampling|process_images_inner)$",
    ),
    _Rule("encode_prompt", "", r"^(?:generate|__call__)$", r"text_encoder"),
    _Rule("denoise", "", r"^(?:generate|__call__)$", r"self\.(?:\w*model|transformer|unet)\b"),
    _Rule(
        "denoise",
        "",
        "",
        r"noise_pred\w* = |self\.(?:transformer(?:_2)?|unet|prior)\(|scheduler\.step\(",
    ),
    _Rule(
        "export", "", "", r"export_to_video\(|export_to_gif\(|imageio\.|save_video\(|cache_video\("
    ),
    _Rule(
        "load",
        "",
        "",
        r"from_pretrained\(|from_single_file\(|load_state_dict\(|load_file\(|torch\.load\(",
    ),
)


class _Compiled(NamedTuple):
    stage: StageName
    path: re.Pattern[str]
    function: re.Pattern[str]
    code: re.Pattern[str]


_COMPILED = tuple(
    _Compiled(each.stage, re.compile(each.path), re.compile(each.function), re.compile(each.code))
    for each in _RULES
)
# A wrapper's nodes do their work in functions called "process" and "decode"; the node is named in the log or by class.
_NODES: tuple[tuple[StageName, re.Pattern[str]], ...] = (
    (
        "decode",
        re.compile(
            r"\bVAEDecode\w*|\bWanVideoDecode|\bHyVideoDecode|\bMochiDecode\w*"
            r"|\bCogVideoDecode|\bLTXV\w*Decode\w*|\bVAE Decode|\bVAEDecodeTiled"
        ),
    ),
    (
        "encode_condition",
        re.compile(
            r"\bVAEEncode\w*|\bWanVideoEncode|\bWanVideo(?:ImageToVideo|ClipVision"
            r"|Vace)Encode\w*|\bCLIPVisionEncode|\bWanImageToVideo|\bHyVideoEncode"
        ),
    ),
    (
        "encode_prompt",
        re.compile(
            r"\bCLIPTextEncode\w*|\bWanVideoTextEncode\w*|\bHyVideoTextEncode"
            r"|\bTextEncode\w+|\bCogVideoTextEncode"
        ),
    ),
    (
        "denoise",
        re.compile(
            r"\bKSampler\w*|\bWanVideoSampler|\bHyVideoSampler|\bSamplerCustom\w*"
            r"|\bMochiSampler|\bCogVideoSampler|\bFramePackSampler"
        ),
    ),
    (
        "load",
        re.compile(
            r"\bLoadWanVideoT5TextEncoder|\bWanVideoModelLoader|\bUNETLoader"
            r"|\bCheckpointLoader\w*|\bDualCLIPLoader|\bCLIPLoader|\bVAELoader"
            r"|\bUnetLoaderGGUF|\bHyVideoModelLoader|\bDownloadAndLoad\w+"
        ),
    ),
    ("export", re.compile(r"\bVHS_VideoCombine|\bSaveVideo|\bSaveAnimatedWEBP|\bCreateVideo")),
    ("post", re.compile(r"\bImageUpscaleWithModel|\bRIFE \w+")),
    ("ingest", re.compile(r"\bVHS_LoadVideo\w*|\bLoadVideo|\bLoadImage")),
)
_NODE_LINE = re.compile(
    r"Error occurred when executing|error.{0,20}\bnode\b|Node (?:Type|ID)"
    r"|failed (?:in|at) node|node_type",
    re.IGNORECASE,
)
_CLASS_IN_PATH = re.compile(r"nodes?(?:_\w+)?\.py$|custom_nodes/")
_REQUESTED = re.compile(r"Requested to load (\w+)")
_ASKED_FOR: tuple[tuple[StageName, re.Pattern[str]], ...] = (
    ("decode", re.compile(r"autoenc|vae", re.IGNORECASE)),
    ("encode_condition", re.compile(r"clipvision|siglip", re.IGNORECASE)),
    (
        "encode_prompt",
        re.compile(r"clip|t5|te_?(?:model)?_?$|textencoder|_te\b|TEModel", re.IGNORECASE),
    ),
    ("denoise", re.compile(r"\w")),
)
_LOADING_BAR = re.compile(r"loading|fetching|download|shards|components|quantiz", re.IGNORECASE)
_SAYS: tuple[tuple[StageName, re.Pattern[str]], ...] = (
    (
        "decode",
        re.compile(
            r"Decoding (?:video|latent|with)|decoding (?:video|latents)|regular VAE decoding"
            r"|VAE decoding",
            re.IGNORECASE,
        ),
    ),
    ("encode_condition", re.compile(r"regular VAE encoding")),
    (
        "export",
        re.compile(
            r"Saving (?:generated |the )?(?:video|file|output)|Saved? video to|Writing video"
        ),
    ),
    (
        "denoise",
        re.compile(
            r"(?:Start|Begin)\w* (?:sampling|denoising)|Generating (?:video|image)|Sampling \d+ frames"
        ),
    ),
    ("encode_prompt", re.compile(r"Encoding (?:text|prompt)|Text encoding")),
    (
        "load",
        re.compile(
            r"Creating Wan\w+ pipeline|Loading (?:model|checkpoint|weights|pipeline|T5"
            r"|transformer|text.encoder)|loading \S+\.(?:pth|safetensors)",
            re.IGNORECASE,
        ),
    ),
)
_LOOKED_BACK = 2000  # lines before the error
_MOVES = re.compile(r"\.to\(|\.cuda\(")
_LIBRARY = re.compile(r"site-packages|dist-packages|lib/python|comfy/|/nodes\.py|custom_nodes")
_PROGRAMS: tuple[tuple[Program, re.Pattern[str]], ...] = (
    (
        "comfyui",
        re.compile(
            r"ComfyUI|comfy/|Requested to load|custom_nodes|Prompt executed"
            r"|!!! Exception during processing|Got an OOM, unloading"
        ),
    ),
    ("wan2gp", re.compile(r"Wan2GP|wgp\.py|\bmmgp\b|HunyuanVideoGP")),
    (
        "a1111",
        re.compile(
            r"stable-diffusion-webui|modules/processing\.py|modules_forge|sd_hijack|call_queue\.py"
        ),
    ),
    (
        "diffusers",
        re.compile(r"diffusers[/\\.]|from diffusers|pipeline_\w+\.py|enable_\w+_offload\("),
    ),
    (
        "official",
        re.compile(
            r"generate\.py|sample_video\.py|hyvideo/|wan/modules|ltx_video/|inference\.py"
            r"|demo_gradio\.py|FramePack"
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Where:
    """The stage and the line that says so; ``firm`` when a frame of the traceback does."""

    stage: StageName | None
    at: int | None
    firm: bool


def where(reading: Reading) -> Where:
    """The stage in which the run ended; None where nothing in the text tells."""
    if (found := _by_frames(reading.frames)) is not None:
        return found
    for look in (_by_node, _by_order):
        if (found := look(reading)) is not None:
            return found
    return Where(None, None, False)


def program(reading: Reading) -> Program | None:
    """Which program ran, by its files and remarks; frames of the traceback count before the rest of the text."""
    text = "\n".join(_slashed(f"{frame.path} {frame.code}") for frame in reading.frames)
    every = _slashed("\n".join(reading.lines))
    for source in (text, every):
        for name, pattern in _PROGRAMS:
            if pattern.search(source):
                return name
    return None


def _slashed(path: str) -> str:
    return path.replace("\\", "/")


def _by_frames(frames: tuple[Frame, ...]) -> Where | None:
    for frame in reversed(frames):
        if (stage := stage_of(frame)) is not None:
            return Where(stage, frame.at, True)
    for frame in frames:
        if _MOVES.search(frame.code) and not _LIBRARY.search(_slashed(frame.path)):
            return Where("load", frame.at, True)
    return None


def stage_of(frame: Frame) -> StageName | None:
    """The stage that one frame stands for, None where it may stand for any."""
    path = _slashed(frame.path)
    for rule in _COMPILED:
        held = rule.path.search(path) and rule.function.search(frame.function)
        if held and rule.code.search(frame.code):
            return rule.stage
    if _CLASS_IN_PATH.search(path):
        return _node_function(frame.function)
    return None


def _node_function(function: str) -> StageName | None:
    """ComfyUI's own node functions; a wrapper's ``process`` says nothing."""
    names: dict[str, StageName] = {
        "decode": "decode",
        "sample": "denoise",
        "encode": "encode_prompt",
    }
    return names.get(function)


def _by_node(reading: Reading) -> Where | None:
    """A line that names the node which failed."""
    for at in range(len(reading.lines) - 1, -1, -1):
        line = reading.lines[at]
        if _NODE_LINE.search(line):
            for stage, pattern in _NODES:
                if pattern.search(line):
                    return Where(stage, at, True)
    return None


def _by_order(reading: Reading) -> Where | None:
    """The last thing that the log says was going on before the error."""
    end = len(reading.lines) if reading.error is None else reading.error.at + 1
    found: list[tuple[int, StageName]] = []
    bars = [bar for bar in reading.bars if bar.at < end]
    if bars:
        bar = bars[-1]
        if _LOADING_BAR.search(bar.label):
            found.append((bar.at, "load"))
        elif "VAE" in bar.label or "decod" in bar.label.lower():
            found.append((bar.at, "decode"))
        else:
            found.append((bar.at, "decode" if 0 < bar.total <= bar.done else "denoise"))
    for at in range(end - 1, max(-1, end - _LOOKED_BACK), -1):
        if (stage := _said(reading.lines[at])) is not None:
            found.append((at, stage))
            break
    if not found:
        return None
    at, stage = max(found)
    return Where(stage, at, False)


def _said(line: str) -> StageName | None:
    """What a remark of a log says is beginning."""
    if "%|" in line:
        return None
    if (asked := _REQUESTED.search(line)) is not None:
        return next(stage for stage, pattern in _ASKED_FOR if pattern.search(asked[1]))
    return next((stage for stage, pattern in _SAYS if pattern.search(line)), None)
