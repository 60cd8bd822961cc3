import torch
from diffusers import MochiPipeline
from diffusers.utils import export_to_video

pipe = MochiPipeline.from_pretrained("genmo/mochi-1-preview")
pipe.enable_model_cpu_offload()
pipe.enable_vae_tiling()

with torch.autocast("cuda", torch.bfloat16, cache_enabled=False):
    frames = pipe("a hummingbird at a red flower", num_frames=85).frames[0]

export_to_video(frames, "hummingbird.mp4", fps=30)
