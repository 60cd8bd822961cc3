import argparse
import time

import torch
from diffusers import (
    BitsAndBytesConfig,
    CogVideoXPipeline,
    HunyuanVideoPipeline,
    HunyuanVideoTransformer3DModel,
    LTXPipeline,
)

REPOS = {
    "hunyuan": "hunyuanvideo-community/HunyuanVideo",
    "ltx": "Lightricks/LTX-Video",
    "cogvideox": "THUDM/CogVideoX-5b",
}
CALLS = {
    "hunyuan": dict(width=768, height=512, num_frames=121, max_sequence_length=128),  # noqa: C408
    "ltx": dict(width=768, height=512, num_frames=121),  # noqa: C408
    "cogvideox": dict(width=720, height=480, num_frames=49),  # noqa: C408
}


def quantization(name):
    if name == "8bit":
        return BitsAndBytesConfig(load_in_8bit=True)
    if name == "nf4":
        return BitsAndBytesConfig(
            load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_compute_dtype=torch.bfloat16
        )
    return None


def load(args):
    repo = REPOS[args.pipeline]
    if args.pipeline == "hunyuan":
        transformer = HunyuanVideoTransformer3DModel.from_pretrained(
            repo,
            subfolder="transformer",
            quantization_config=quantization(args.quantize),
            torch_dtype=torch.bfloat16,
        )
        pipe = HunyuanVideoPipeline.from_pretrained(
            repo, transformer=transformer, torch_dtype=torch.bfloat16
        )
    elif args.pipeline == "ltx":
        pipe = LTXPipeline.from_pretrained(repo, torch_dtype=torch.bfloat16)
    else:
        pipe = CogVideoXPipeline.from_pretrained(repo, torch_dtype=torch.bfloat16)
    if args.tiling:
        pipe.vae.enable_tiling()
    if args.offload:
        pipe.enable_model_cpu_offload()
    else:
        pipe = pipe.to("cuda")
    return pipe


def main(args):
    pipe = load(args)
    torch.cuda.reset_peak_memory_stats()
    start = time.time()
    pipe(prompt=args.prompt, num_inference_steps=args.steps, **CALLS[args.pipeline])
    seconds = time.time() - start
    print(f"{seconds:.2f} s, {torch.cuda.max_memory_allocated() / 1024**3:.2f} GB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pipeline", choices=sorted(REPOS), required=True)
    parser.add_argument("--prompt", default="a cat walks on the grass")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--offload", action="store_true")
    parser.add_argument("--tiling", action="store_true")
    parser.add_argument("--quantize", choices=["8bit", "nf4"], default=None)
    main(parser.parse_args())
