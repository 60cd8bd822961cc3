import torch
from diffusers import AutoencoderKLWan, WanPipeline
from diffusers.utils import export_to_video

MODEL = "Wan-AI/Wan2.1-T2V-14B-Diffusers"
vae = AutoencoderKLWan.from_pretrained(MODEL, subfolder="vae", torch_dtype=torch.float32)
pipeline = WanPipeline.from_pretrained(MODEL, vae=vae, torch_dtype=torch.bfloat16).to("cuda")

pipeline.transformer.to(memory_format=torch.channels_last)
pipeline.transformer = torch.compile(pipeline.transformer, mode="max-autotune", fullgraph=True)

result = pipeline(prompt="a fox in the snow", num_frames=81, guidance_scale=5.0)
export_to_video(result.frames[0], "fox.mp4", fps=16)
