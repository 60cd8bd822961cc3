import torch
from diffusers import AutoencoderKLWan, WanPipeline, WanTransformer3DModel
from diffusers.hooks.group_offloading import apply_group_offloading
from diffusers.utils import export_to_video
from transformers import UMT5EncoderModel

repo = "Wan-AI/Wan2.1-T2V-14B-Diffusers"
encoder = UMT5EncoderModel.from_pretrained(
    repo, subfolder="text_encoder", torch_dtype=torch.bfloat16
)
vae = AutoencoderKLWan.from_pretrained(repo, subfolder="vae", torch_dtype=torch.float32)
denoiser = WanTransformer3DModel.from_pretrained(
    repo, subfolder="transformer", torch_dtype=torch.bfloat16
)

card = torch.device("cuda")
host = torch.device("cpu")
apply_group_offloading(
    encoder,
    onload_device=card,
    offload_device=host,
    offload_type="block_level",
    num_blocks_per_group=4,
)
denoiser.enable_group_offload(
    onload_device=card,
    offload_device=host,
    offload_type="leaf_level",
    use_stream=True,
)

pipe = WanPipeline.from_pretrained(
    repo, vae=vae, transformer=denoiser, text_encoder=encoder, torch_dtype=torch.bfloat16
)
pipe.to("cuda")

clip = pipe(
    prompt="a ferry crossing a fjord at dusk",
    negative_prompt="blurred, static",
    num_frames=81,
    guidance_scale=5.0,
).frames[0]
export_to_video(clip, "ferry.mp4", fps=16)
