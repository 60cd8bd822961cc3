"""Tiny diffusers folders on disk: the library's pipelines with few and narrow layers, real tokenizers, safetensors.

Run as a program it makes one: ``python tests/measure/tiny.py stable-diffusion-1.5 FOLDER [--wide]``.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

import torch

from cardfit.library import load
from cardfit.library.build import build
from cardfit.measure.runner.assemble import filled
from cardfit.trace import recipes

SHRUNK: dict[str, dict[str, Any]] = {
    "AutoencoderKL": {"block_out_channels": [8, 8, 8, 8], "norm_num_groups": 4, "layers_per_block": 1},
    "UNet2DConditionModel": {
        "block_out_channels": [8, 8, 16, 16],
        "norm_num_groups": 4,
        "layers_per_block": 1,
        "attention_head_dim": 1,  # heads, in this class: a width of 8 each, which every attention kernel takes
        "cross_attention_dim": 16,
    },
    "CLIPTextModel": {
        "hidden_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "vocab_size": 64,
        "projection_dim": 16,
        "eos_token_id": 2,
    },
    "CLIPVisionModelWithProjection": {
        "hidden_size": 32, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2,
        "projection_dim": 16,
    },
    "T5EncoderModel": {"d_model": 32, "d_ff": 32, "d_kv": 8, "num_layers": 2, "num_heads": 4, "vocab_size": 64},
    "UMT5EncoderModel": {
        "d_model": 32, "d_ff": 32, "d_kv": 8, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4,
        "vocab_size": 64,
    },
    "FluxTransformer2DModel": {
        "num_layers": 1,
        "num_single_layers": 1,
        "attention_head_dim": 16,
        "num_attention_heads": 2,
        "pooled_projection_dim": 16,
        "joint_attention_dim": 32,
        "axes_dims_rope": [4, 6, 6],
    },
    "WanTransformer3DModel": {
        "num_attention_heads": 2, "attention_head_dim": 12, "text_dim": 32, "ffn_dim": 32, "num_layers": 2,
    },
    "WanVACETransformer3DModel": {
        "num_attention_heads": 2, "attention_head_dim": 12, "text_dim": 32, "ffn_dim": 32, "num_layers": 2,
        "vace_layers": [0],
    },
    "AutoencoderKLWan": {"base_dim": 3, "dim_mult": [1, 1, 1, 1], "num_res_blocks": 1},
}  # fmt: skip
# some tens of megabytes of activations and seconds of work on two cores
WIDE: dict[str, dict[str, Any]] = {
    "AutoencoderKL": {
        "block_out_channels": [64, 64, 64, 64],
        "norm_num_groups": 16,
        "layers_per_block": 2,
    },
    "UNet2DConditionModel": {
        "block_out_channels": [64, 128, 128, 128],
        "norm_num_groups": 16,
        "layers_per_block": 1,
        "attention_head_dim": 8,
        "cross_attention_dim": 64,
    },
    "CLIPTextModel": {**SHRUNK["CLIPTextModel"], "hidden_size": 64, "num_attention_heads": 4},
}


def shrunk(name: str, sizes: dict[str, dict[str, Any]] = SHRUNK) -> Any:
    """The library's model ``name`` with small configs."""
    return shrink(load(name), sizes)


def shrink(model: Any, sizes: dict[str, dict[str, Any]] = SHRUNK) -> Any:
    """``model`` with small configs."""
    parts = {
        key: part.model_copy(
            update={"config": {**part.config, **sizes.get(part.class_path.rpartition(".")[2], {})}}
        )
        for key, part in model.components.items()
    }
    return model.model_copy(update={"components": parts})


def tokenizer(length: int) -> Any:
    """A real tokenizer with a small vocabulary of words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = {"<pad>": 0, "<unk>": 1, "</s>": 2, "<s>": 3, "word": 4, "cat": 5, "a": 6}
    made = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=made,
        model_max_length=length,
        pad_token="<pad>",
        unk_token="<unk>",
        eos_token="</s>",
        bos_token="<s>",
    )


def save(name: str, folder: Path, sizes: dict[str, dict[str, Any]] = SHRUNK) -> Path:
    """A diffusers folder of ``name`` at ``folder``, as save_pretrained writes it."""
    diffusers = importlib.import_module("diffusers")
    model = shrunk(name, sizes)
    kind = getattr(diffusers, model.pipeline)
    modules = {
        key: filled(build(part, "float32"), torch.device("cpu"), 0)
        for key, part in model.components.items()
        if part.counted
    }
    others: dict[str, Any] = {"scheduler": recipes.scheduler(model)}
    for key in inspect.signature(kind.__init__).parameters:
        if key.startswith("tokenizer"):
            encoder: Any = modules["text_encoder" + key.removeprefix("tokenizer")]
            length = getattr(encoder.config, "max_position_embeddings", None) or 512
            others[key] = tokenizer(int(length))
        elif key in ("safety_checker", "feature_extractor", "image_encoder"):
            others[key] = None
    if "requires_safety_checker" in inspect.signature(kind.__init__).parameters:
        others["requires_safety_checker"] = False
    kind(**modules, **others).save_pretrained(folder, safe_serialization=True)
    return folder


if __name__ == "__main__":
    save(sys.argv[1], Path(sys.argv[2]), WIDE if "--wide" in sys.argv else SHRUNK)
